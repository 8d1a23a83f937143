// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:5:2: error: extern function 'scale' is called as '(i32) -> i32' here, and as '(f32) -> f32' elsewhere
func.func @kernel(%x: f32, %i: i32) {
  %0 = "tt.extern_elementwise"(%x)
      <{libname = "m", libpath = "/m.so", pure = true, symbol = "scale"}> : (f32) -> f32 loc("kernel.py":4:2)
  %1 = "tt.extern_elementwise"(%i)
      <{libname = "m", libpath = "/m.so", pure = true, symbol = "scale"}> : (i32) -> i32 loc("kernel.py":5:2)
  return
}
