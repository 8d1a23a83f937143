// RUN: tdist-opt %s --tdist-widen-narrow-floats --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: %[[PRODUCT:.*]] = arith.mulf %{{.*}} : f32
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[PRODUCT]] : f32 to f16
// CHECK: %[[AGAIN:.*]] = arith.extf %[[ROUNDED]] : f16 to f32
// CHECK: %[[SUM:.*]] = arith.addf %[[AGAIN]], %{{.*}} : f32
// CHECK: arith.truncf %[[SUM]] : f32 to f16
func.func @kernel(%x: f16) -> f16 {
  %0 = arith.mulf %x, %x : f16
  %1 = arith.addf %0, %x : f16
  return %1 : f16
}
