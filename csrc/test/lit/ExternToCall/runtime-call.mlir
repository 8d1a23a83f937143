// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call | FileCheck %s

// The call gets one more operand: where in the kernel it is made.
// CHECK-DAG: llvm.mlir.global internal constant @tdist_file_0("ring.py\00")
// CHECK-DAG: llvm.mlir.global internal constant @tdist_loc_0() {{.*}} : !llvm.struct<(ptr, i32, i32)>
// CHECK-DAG: llvm.mlir.addressof @tdist_file_0
// CHECK-DAG: llvm.mlir.constant(41 : i32)
// CHECK-DAG: llvm.mlir.constant(8 : i32)
// CHECK-DAG: func.func private @tdist_sim_wait_i64(i64, i32, i64, i32, i32, !llvm.ptr) -> i32
// CHECK-LABEL: func.func @kernel
// CHECK: %[[PLACE:.*]] = llvm.mlir.addressof @tdist_loc_0
// CHECK: call @tdist_sim_wait_i64(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PLACE]])
func.func @kernel(%address: i64, %count: i32, %value: i64, %scope: i32) -> i32 {
  %token = "tt.extern_elementwise"(%address, %count, %value, %scope, %scope)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i64"}>
      : (i64, i32, i64, i32, i32) -> i32 loc("ring.py":41:8)
  return %token : i32
}
