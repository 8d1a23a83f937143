// RUN: tdist-opt %s --tdist-convert-matmul-to-vector --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: scf.for %[[BATCH:.*]] =
// CHECK: vector.load %{{.*}}[%[[BATCH]], %{{.*}}, %{{.*}}] : memref<4x16x16xf32>
// CHECK: vector.fma
func.func @kernel(%a: memref<4x16x16xf32>, %b: memref<4x16x16xf32>, %c: memref<4x16x16xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<4x16x16xf32>, memref<4x16x16xf32>) outs(%c : memref<4x16x16xf32>)
  return
}
