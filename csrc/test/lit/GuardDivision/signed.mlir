// RUN: tdist-opt %s --tdist-guard-division | FileCheck %s

// Neither x / 0 nor the smallest number / -1 may reach the host's instruction.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[A:.*]]: i32, %[[B:.*]]: i32)
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[ISZERO:.*]] = arith.cmpi eq, %[[B]], %[[ZERO]]
// CHECK: arith.constant -2147483648 : i32
// CHECK: arith.constant -1 : i32
// CHECK: %[[UNSAFE:.*]] = arith.ori %[[ISZERO]]
// CHECK: %[[SAFE:.*]] = arith.select %[[UNSAFE]], %{{.*}}, %[[B]]
// CHECK: %[[Q:.*]] = arith.divsi %[[A]], %[[SAFE]]
// CHECK: arith.select %[[ISZERO]], %[[ZERO]], %[[Q]]
func.func @kernel(%a: i32, %b: i32) -> i32 {
  %0 = arith.divsi %a, %b : i32
  return %0 : i32
}
