// RUN: tdist-opt %s --tdist-own-loop-buffers | FileCheck %s

// An accumulator that the body updates in place needs no copy.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
func.func @kernel(%a: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> memref<16xf32> {
    scf.yield %x : memref<16xf32>
  }
  return
}
