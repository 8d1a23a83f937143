// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:4:2: error: extern function 'scale' takes and returns scalars, but is called as '(tensor<4xf32>) -> tensor<4xf32>'
func.func @kernel(%x: tensor<4xf32>) {
  %0 = "tt.extern_elementwise"(%x)
      <{libname = "m", libpath = "/m.so", pure = true, symbol = "scale"}> : (tensor<4xf32>) -> tensor<4xf32> loc("kernel.py":4:2)
  return
}
