// RUN: tdist-opt %s --tdist-give-turns-in-loops | FileCheck %s

// A loop that looks at no memory waits for nobody: a counted one is left alone, any other may take
// long.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT: tdist_sim_yield
// CHECK: scf.while
// CHECK: call @tdist_sim_take_turns()
// CHECK-LABEL: func.func @counted
// CHECK-NOT: call
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

func.func @counted(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> i32 : i32 {
    %next = arith.addi %s, %i : i32
    scf.yield %next : i32
  }
  return %sum : i32
}
