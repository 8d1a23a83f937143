// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:1:1: error:
// CHECK: kernel.py:2:1: error:
func.func @kernel(%pe: i32) {
  %0 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_a"}> : (i32) -> i32 loc("kernel.py":1:1)
  %1 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_b"}> : (i32) -> i32 loc("kernel.py":2:1)
  return
}
