// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-reject-foreign 2>&1 | FileCheck %s

// CHECK: kernel.py:9:4: error: operation 'hivm.hir.something' is not supported on simulated NPUs
func.func @kernel(%tile: tensor<4xf32>) {
  "hivm.hir.something"(%tile) : (tensor<4xf32>) -> () loc("kernel.py":9:4)
  return
}
