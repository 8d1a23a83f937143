// RUN: tdist-opt %s --tdist-fuse-elementwise | FileCheck %s

// Two operations and a constant tile become one loop.
// CHECK-LABEL: func.func @kernel
// CHECK-COUNT-1: linalg.generic
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK-NOT: linalg.fill
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %two = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %twos = linalg.fill ins(%two : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %product = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%sum, %twos : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %product : tensor<64xf32>
}
