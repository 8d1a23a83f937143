// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-triton-calls-to-linalg 2>&1 | FileCheck %s

// CHECK: k.py:7:3: error: operation 'hfusion.elemwise_binary' is not supported on simulated NPUs
func.func @kernel(%a: tensor<4xf32>) {
  %0 = "hfusion.elemwise_binary"(%a, %a, %a) <{fun = #hfusion.binary_fn<strange>}> ({
  ^bb0(%x: f32, %y: f32, %out: f32):
    "linalg.yield"(%x) : (f32) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("k.py":7:3)
  return
}
