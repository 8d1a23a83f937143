// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-drop-foreign | FileCheck %s

// A mark says how to lay out a tile on an NPU, and nothing about its value.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT: annotation.mark
// CHECK: return
func.func @kernel(%tile: tensor<16x16xf32>) {
  "annotation.mark"(%tile) {MayImplicitTransposeWithLastAxis} : (tensor<16x16xf32>) -> ()
  return
}
