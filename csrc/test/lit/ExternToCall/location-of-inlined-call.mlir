// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call | FileCheck %s

// A call in a device function counts as the line of the kernel that calls it, through names and fusions.
// CHECK-DAG: @tdist_file_0("kernel.py\00")
// CHECK-DAG: llvm.mlir.constant(7 : i32)
// CHECK-NOT: helper.py
func.func @kernel(%zero: i32) {
  %0 = "tt.extern_elementwise"(%zero)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all"}> : (i32) -> i32
      loc(callsite("helper.py":3:4 at callsite("library.py":5:6 at fused[unknown, "call"("kernel.py":7:8)])))
  return
}
