// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:4:2: error: extern function 'scale' of library 'mylib' has no libpath: on simulated NPUs it must be the path of a shared library built for this host
func.func @kernel(%x: f32) {
  %0 = "tt.extern_elementwise"(%x)
      <{libname = "mylib", libpath = "", pure = true, symbol = "scale"}> : (f32) -> f32 loc("kernel.py":4:2)
  return
}
