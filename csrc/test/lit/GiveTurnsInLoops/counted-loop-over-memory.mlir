// RUN: tdist-opt %s --tdist-give-turns-in-loops | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-NOT: tdist_sim_yield
// CHECK: scf.for
// CHECK: memref.load %arg0
// CHECK: call @tdist_sim_take_turns()
func.func @kernel(%memory: memref<?xi32>, %n: index) -> i32 {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> i32 {
    %value = memref.load %memory[%i] : memref<?xi32>
    %next = arith.addi %s, %value : i32
    scf.yield %next : i32
  }
  return %sum : i32
}
