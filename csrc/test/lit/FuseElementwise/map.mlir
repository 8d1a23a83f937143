// RUN: tdist-opt %s --tdist-fuse-elementwise | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-NOT: linalg.map
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: linalg.yield
func.func @kernel(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = linalg.map ins(%x : tensor<64xf32>) outs(%x : tensor<64xf32>)
    (%in: f32) {
      %1 = math.tanh %in : f32
      linalg.yield %1 : f32
    }
  return %0 : tensor<64xf32>
}
