// RUN: tdist-opt %s --tdist-plan-memory | FileCheck %s

// A small buffer of a loop gets its stack once, before the loop.
// CHECK-NOT: tdist_sim_alloc
// CHECK-LABEL: func.func @kernel
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1xi32>
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @kernel(%in: memref<1xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<1xi32>
    memref.copy %in, %b : memref<1xi32> to memref<1xi32>
    memref.copy %b, %in : memref<1xi32> to memref<1xi32>
  }
  return
}
