// RUN: not tdist-opt %s --tdist-convert-triton-calls-to-linalg --tdist-reject-foreign 2>&1 | FileCheck %s

// CHECK: k.py:6:1: error: function '__hmf_powi' is not supported on simulated NPUs
func.func private @__hmf_powi(i32, i32) -> i32
func.func @kernel(%n: i32) {
  %0 = call @__hmf_powi(%n, %n) : (i32, i32) -> i32 loc("k.py":6:1)
  return
}
