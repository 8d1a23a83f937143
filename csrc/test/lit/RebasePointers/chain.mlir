// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers --canonicalize | FileCheck %s

// symm_at(consume_token(p, token), pe): one buffer after the other, in the order in which they were asked for.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[DATA:.*]]: memref<?xf32>, %[[TOKEN:.*]]: i32, %[[PE:.*]]: i32
// CHECK: %[[READY:.*]] = "hivm.hir.custom"(%[[DATA]], %[[TOKEN]]){{.*}}symbol = "aclshmem_consume_token_float_ptr_1d"
// CHECK: %[[THERE:.*]] = "hivm.hir.custom"(%[[READY]], %[[PE]]){{.*}}symbol = "aclshmem_ptr_float"
// CHECK: memref.reinterpret_cast %[[THERE]] to offset: [%c0]
func.func @kernel(%data: memref<?xf32>, %token: i32, %pe: i32) -> memref<1xf32, strided<[1], offset: ?>> {
  %bytes = arith.constant 4 : i32
  %zero = "tt.extern_elementwise"(%token)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
  %nothing = arith.index_cast %zero : i64 to index
  %ready = memref.reinterpret_cast %data to offset: [%nothing], sizes: [1], strides: [1]
      : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
  %pointer = memref.extract_aligned_pointer_as_index %ready : memref<1xf32, strided<[1], offset: ?>> -> index
  %address = arith.index_cast %pointer : index to i64
  %delta = "tt.extern_elementwise"(%address, %pe, %bytes)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
  %distance = arith.index_cast %delta : i64 to index
  %offset = arith.addi %nothing, %distance : index
  %view = memref.reinterpret_cast %data to offset: [%offset], sizes: [1], strides: [1]
      : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
  return %view : memref<1xf32, strided<[1], offset: ?>>
}
