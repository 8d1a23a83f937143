// RUN: not tdist-opt %s --tdist-convert-triton-calls-to-linalg --tdist-reject-foreign 2>&1 | FileCheck %s

// The network needs a power of two; what it cannot do ends in an error, never in wrong code.
// CHECK: k.py:8:1: error: function 'triton_sort' is not supported on simulated NPUs
func.func private @triton_sort(tensor<6xf32>, i64, i1) -> tensor<6xf32>
func.func @kernel(%in: tensor<6xf32>) -> tensor<6xf32> {
  %dim = arith.constant 0 : i64
  %descending = arith.constant false
  %0 = call @triton_sort(%in, %dim, %descending) : (tensor<6xf32>, i64, i1) -> tensor<6xf32> loc("k.py":8:1)
  return %0 : tensor<6xf32>
}
