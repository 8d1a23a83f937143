// RUN: tdist-opt %s --tdist-guard-division | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[A:.*]]: index, %[[B:.*]]: index)
// CHECK: %[[ISZERO:.*]] = arith.cmpi eq, %[[B]]
// CHECK-NOT: arith.ori
// CHECK: %[[SAFE:.*]] = arith.select %[[ISZERO]], %{{.*}}, %[[B]]
// CHECK: %[[R:.*]] = arith.remui %[[A]], %[[SAFE]]
// CHECK: arith.select %[[ISZERO]], %[[A]], %[[R]]
func.func @kernel(%a: index, %b: index) -> index {
  %0 = arith.remui %a, %b : index
  return %0 : index
}
