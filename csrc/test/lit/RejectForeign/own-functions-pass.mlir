// RUN: tdist-opt %s --tdist-reject-foreign | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: call @tdist_sim_yield
// CHECK: call @scale
func.func private @tdist_sim_yield()
func.func private @scale(f32) -> f32 attributes {tdist.extern}
func.func @kernel(%x: f32) {
  func.call @tdist_sim_yield() : () -> ()
  %0 = func.call @scale(%x) : (f32) -> f32
  return
}
