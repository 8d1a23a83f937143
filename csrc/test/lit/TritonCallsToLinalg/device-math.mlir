// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg | FileCheck %s

// CHECK-NOT: @__hmf
// CHECK-LABEL: func.func @kernel
// CHECK: math.tanh %{{.*}} : f32
// CHECK: math.powf %{{.*}}, %{{.*}} : f16
// CHECK: arith.cmpf uno
// CHECK: arith.maximumf
func.func private @__hmf_tanhf(f32) -> f32 attributes {llvm.readnone}
func.func private @__hmf_powf(f16, f16) -> f16 attributes {llvm.readnone}
func.func private @__hmf_isnan(f32) -> i1 attributes {llvm.readnone}
func.func private @__hmf_reluDh(f16) -> f16 attributes {llvm.readnone}
func.func @kernel(%x: f32, %h: f16) {
  %0 = call @__hmf_tanhf(%x) : (f32) -> f32
  %1 = call @__hmf_powf(%h, %h) : (f16, f16) -> f16
  %2 = call @__hmf_isnan(%x) : (f32) -> i1
  %3 = call @__hmf_reluDh(%h) : (f16) -> f16
  return
}
