// RUN: not tdist-opt %s --tdist-plan-memory 2>&1 | FileCheck %s

// CHECK: k.py:2:3: error: a tile of type 'memref<?xf32>' has no static shape: not supported on simulated NPUs
func.func @kernel(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32> loc("k.py":2:3)
  return
}
