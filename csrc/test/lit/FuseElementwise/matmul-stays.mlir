// RUN: tdist-opt %s --tdist-fuse-elementwise | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: linalg.matmul
func.func @kernel(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
