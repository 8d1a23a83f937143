// RUN: not tdist-opt %s --tdist-reject-foreign 2>&1 | FileCheck %s

// CHECK: k.py:3:1: error: a loop or a condition chooses a pointer
func.func @kernel(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> memref<?xf32> {
    scf.yield %p : memref<?xf32>
  } loc("k.py":3:1)
  return
}
