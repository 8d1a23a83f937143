// RUN: tdist-opt %s --tdist-widen-narrow-floats | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-NEXT: arith.select
// CHECK-NEXT: arith.bitcast
// CHECK-NEXT: return
func.func @kernel(%c: i1, %x: f16, %y: f16) -> i16 {
  %0 = arith.select %c, %x, %y : f16
  %1 = arith.bitcast %0 : f16 to i16
  return %1 : i16
}
