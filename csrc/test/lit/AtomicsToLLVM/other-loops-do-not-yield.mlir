// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// CHECK-NOT: tdist_sim_yield
func.func @kernel(%n: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %0 = scf.while (%i = %n) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  return %0 : i32
}
