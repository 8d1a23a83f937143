// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-lower-to-hivm=soc=Ascend950PR_9589 | FileCheck %s

// There, what has a result is a function that takes addresses, with the offsets that the IR has lost.
// CHECK-DAG: func.func private @tdist_wait_i64(i64, i32, i64, i32, i32) -> i32 attributes {hivm.func_core_type = #hivm.func_core_type<AIC_OR_AIV>}
// CHECK-DAG: func.func private @tdist_zero(i32) -> i64
// CHECK-DAG: func.func private @tdist_delta(i64, i32, i32) -> i64
// CHECK-DAG: func.func private @_mlir_ciface_aclshmem_my_pe() -> i32
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[SIGNAL:[a-z0-9]+]]: memref<?xi64>, %[[SLOT:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: i32, %[[VALUE:[a-z0-9]+]]: i64
// CHECK: %[[PE:.*]] = call @_mlir_ciface_aclshmem_my_pe() : () -> i32
// CHECK: memref.extract_aligned_pointer_as_index %[[SIGNAL]]
// CHECK: %[[ELEMENTS:.*]] = arith.index_cast %[[SLOT]] : index to i64
// CHECK: %[[SIZE:.*]] = arith.constant 8 : i64
// CHECK: %[[BYTES:.*]] = arith.muli %[[ELEMENTS]], %[[SIZE]]
// CHECK: %[[ADDRESS:.*]] = arith.addi %{{.*}}, %[[BYTES]]
// CHECK: %[[TOKEN:.*]] = call @tdist_wait_i64(%[[ADDRESS]], %[[COUNT]], %[[VALUE]], %{{.*}}, %{{.*}})
// CHECK: %[[ZERO:.*]] = call @tdist_zero(%[[TOKEN]])
// CHECK: arith.constant 128 : i64
// CHECK: %[[DELTA:.*]] = call @tdist_delta(%{{.*}}, %[[PE]], %{{.*}})
// CHECK: arith.addi %[[ZERO]], %[[DELTA]]
// What has none is passed the view, as on the others.
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: "hivm.hir.custom"({{.*}}symbol = "aclshmem_int64_p"
func.func @kernel(%signal: memref<?xi64>, %slot: index, %count: i32, %value: i64) -> i64 {
  %set = arith.constant 1 : i32
  %pe = "tt.extern_elementwise"(%set)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_my_pe"}> : (i32) -> i32
  %word = memref.reinterpret_cast %signal to offset: [%slot], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: ?>>
  %pointer = memref.extract_aligned_pointer_as_index %word : memref<1xi64, strided<[1], offset: ?>> -> index
  %address = arith.index_cast %pointer : index to i64
  %token = "tt.extern_elementwise"(%address, %count, %value, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %zero = "tt.extern_elementwise"(%token)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
  %other = memref.reinterpret_cast %signal to offset: [16], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: 16>>
  %p = memref.extract_aligned_pointer_as_index %other : memref<1xi64, strided<[1], offset: 16>> -> index
  %a = arith.index_cast %p : index to i64
  %delta = "tt.extern_elementwise"(%a, %pe, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
  %sum = arith.addi %zero, %delta : i64
  %0 = "tt.extern_elementwise"(%address, %pe, %value, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  return %sum : i64
}
