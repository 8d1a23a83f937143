// RUN: tdist-opt %s --tdist-fuse-elementwise | FileCheck %s

// Only the reduction may be reordered, not what is computed for each element.
// CHECK-LABEL: func.func @kernel
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%x: tensor<64xf32>, %init: tensor<f32>) -> tensor<f32> {
  %empty = tensor.empty() : tensor<64xf32>
  %twice = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %sum = linalg.reduce ins(%twice : tensor<64xf32>) outs(%init : tensor<f32>) dimensions = [0]
    (%in: f32, %so_far: f32) {
      %0 = arith.addf %in, %so_far : f32
      linalg.yield %0 : f32
    }
  return %sum : tensor<f32>
}
