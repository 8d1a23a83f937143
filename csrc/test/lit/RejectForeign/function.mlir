// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-reject-foreign 2>&1 | FileCheck %s

// CHECK: kernel.py:9:4: error: function 'triton_assert_0' is not supported on simulated NPUs
func.func private @triton_assert_0(i32)
func.func @kernel(%n: i32) {
  func.call @triton_assert_0(%n) : (i32) -> () loc("kernel.py":9:4)
  return
}
