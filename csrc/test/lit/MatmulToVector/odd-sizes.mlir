// RUN: tdist-opt %s --tdist-convert-matmul-to-vector --canonicalize | FileCheck %s

// 6 columns hold three vectors of 2; 5 rows go one by one.
// CHECK-LABEL: func.func @kernel
// CHECK: vector.fma %{{.*}} : vector<2xf32>
// CHECK-NOT: vector.fma
// CHECK: return
func.func @kernel(%a: memref<5x3xf32>, %b: memref<3x6xf32>, %c: memref<5x6xf32>) {
  linalg.matmul ins(%a, %b : memref<5x3xf32>, memref<3x6xf32>) outs(%c : memref<5x6xf32>)
  return
}
