// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[SIGNAL:[a-z0-9]+]]: memref<?xi32>, %[[VALUE:[a-z0-9]+]]: i32, %[[PE:[a-z0-9]+]]: i32
// CHECK-DAG: %[[SET:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ADD:.*]] = arith.constant 1 : i32
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: "hivm.hir.custom"(%[[SIGNAL]], %[[VALUE]], %[[SET]], %[[PE]]){{.*}}symbol = "aclshmemx_signal_op"
// CHECK-NEXT: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: "hivm.hir.custom"(%[[SIGNAL]], %[[VALUE]], %[[ADD]], %[[PE]]){{.*}}symbol = "aclshmemx_signal_op"
// An `add` reads what it adds from UB, on a pipe of its own.
// CHECK-NEXT: "hivm.hir.pipe_barrier"()
// CHECK: "hivm.hir.custom"(%[[SIGNAL]], %[[VALUE]], %[[PE]]){{.*}}symbol = "aclshmem_int32_p"
// CHECK: %[[SEEN:.*]] = "hivm.hir.custom"(%[[SIGNAL]], %[[SET]], %[[VALUE]])
// CHECK-NOT: no_side_effect
// CHECK-SAME: symbol = "aclshmem_signal_wait_until"} : (memref<?xi32>, i32, i32) -> i32
// CHECK: return %[[SEEN]]
func.func @kernel(%signal: memref<?xi32>, %value: i32, %pe: i32) -> i32 {
  %set = arith.constant 0 : i32
  %add = arith.constant 1 : i32
  %p = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %a = arith.index_cast %p : index to i64
  %0 = "tt.extern_elementwise"(%a, %value, %set, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_signal_op"}> : (i64, i32, i32, i32) -> i32
  %1 = "tt.extern_elementwise"(%a, %value, %add, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_signal_op"}> : (i64, i32, i32, i32) -> i32
  %2 = "tt.extern_elementwise"(%a, %value, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_int_p"}> : (i64, i32, i32) -> i32
  %3 = "tt.extern_elementwise"(%a, %set, %value)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_signal_wait_until"}> : (i64, i32, i32) -> i32
  return %3 : i32
}
