// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-triton-calls-to-linalg | FileCheck %s

// The region of the foreign op is not what is lowered: it yields where only linalg ops may.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT: %[[R:.*]] = arith.remf %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return %[[R]]
func.func @kernel(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "hfusion.elemwise_binary"(%a, %b, %a) <{fun = #hfusion.binary_fn<mod>, operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%x: f32, %y: f32, %out: f32):
    "linalg.yield"(%x) : (f32) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
