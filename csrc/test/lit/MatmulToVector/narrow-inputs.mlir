// RUN: tdist-opt %s --tdist-convert-matmul-to-vector | FileCheck %s

// 16-bit inputs are widened once, not for each product; a 16-bit result is rounded once, at the end.
// CHECK-LABEL: func.func @kernel
// CHECK: memref.alloc() : memref<16x16xf32>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: memref.alloc() : memref<16x16xf32>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: memref.alloc() : memref<16x16xf32>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: vector.fma %{{.*}} : vector<8xf32>
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @kernel(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf16>) {
  linalg.matmul ins(%a, %b : memref<16x16xf16>, memref<16x16xf16>) outs(%c : memref<16x16xf16>)
  return
}
