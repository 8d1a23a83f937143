// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers --canonicalize | FileCheck %s

// What is reached through consume_token depends on the token, in a loop too; other views of the buffer do not.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[DATA:.*]]: memref<?xi64>, %[[TOKEN:.*]]: i32, %[[ROW:[a-z0-9]+]]: index
// CHECK: %[[READY:.*]] = "hivm.hir.custom"(%[[DATA]], %[[TOKEN]])
// CHECK-SAME: no_side_effect, symbol = "aclshmem_consume_token_int64_ptr_1d"} : (memref<?xi64>, i32) -> memref<?xi64>
// CHECK: memref.reinterpret_cast %[[DATA]] to offset: [%[[ROW]]]
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.reinterpret_cast %[[READY]] to offset: [%[[I]]]
func.func @kernel(%data: memref<?xi64>, %token: i32, %row: index, %n: index, %step: index) {
  %zero = "tt.extern_elementwise"(%token)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
  %nothing = arith.index_cast %zero : i64 to index
  %other = memref.reinterpret_cast %data to offset: [%row], sizes: [32], strides: [1]
      : memref<?xi64> to memref<32xi64, strided<[1], offset: ?>>
  "test.use"(%other) : (memref<32xi64, strided<[1], offset: ?>>) -> ()
  scf.for %i = %row to %n step %step {
    %offset = arith.addi %nothing, %i : index
    %view = memref.reinterpret_cast %data to offset: [%offset], sizes: [32], strides: [1]
        : memref<?xi64> to memref<32xi64, strided<[1], offset: ?>>
    "test.use"(%view) : (memref<32xi64, strided<[1], offset: ?>>) -> ()
  }
  return
}
