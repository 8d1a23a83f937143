// RUN: tdist-opt %s --tdist-convert-matmul-to-vector | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: arith.muli %{{.*}} : vector<8xi32>
// CHECK: arith.addi %{{.*}} : vector<8xi32>
func.func @kernel(%a: memref<16x16xi8>, %b: memref<16x16xi8>, %c: memref<16x16xi32>) {
  linalg.matmul ins(%a, %b : memref<16x16xi8>, memref<16x16xi8>) outs(%c : memref<16x16xi32>)
  return
}
