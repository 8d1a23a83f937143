// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-drop-foreign | FileCheck %s

// tl.debug_barrier: a simulated program is one thread.
// CHECK-LABEL: func.func @kernel
// CHECK-NEXT: return
func.func @kernel() {
  "gpu.barrier"() : () -> ()
  return
}
