// RUN: tdist-opt %s --tdist-guard-division | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-NOT: arith.select
// CHECK: return
func.func @kernel(%a: i64) -> i64 {
  %seven = arith.constant 7 : i64
  %0 = arith.divsi %a, %seven : i64
  return %0 : i64
}
