// RUN: not tdist-opt %s --tdist-reject-foreign 2>&1 | FileCheck %s

// CHECK: k.py:3:1: error: a loop or a condition chooses a pointer, which is not supported on simulated NPUs: choose the offset
// CHECK: k.py:4:1: error: a loop or a condition chooses a pointer
func.func @kernel(%a: memref<?xf32>, %b: memref<?xf32>, %c: i1) {
  %0 = arith.select %c, %a, %b : memref<?xf32> loc("k.py":3:1)
  %1 = scf.if %c -> (memref<?xf32>) {
    scf.yield %a : memref<?xf32>
  } else {
    scf.yield %b : memref<?xf32>
  } loc("k.py":4:1)
  return
}
