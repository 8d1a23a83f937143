// RUN: tdist-opt %s --tdist-widen-narrow-floats | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: arith.truncf %[[F]] : f32 to bf16
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.fptosi %[[W]] : f32 to i8
// CHECK: %[[D:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %[[D]] : f32 to f16
func.func @kernel(%i: i32, %b: bf16, %d: f64) -> (bf16, i8, f16) {
  %0 = arith.sitofp %i : i32 to bf16
  %1 = arith.fptosi %b : bf16 to i8
  %2 = arith.truncf %d : f64 to f16
  return %0, %1, %2 : bf16, i8, f16
}
