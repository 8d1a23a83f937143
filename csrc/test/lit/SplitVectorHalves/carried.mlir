// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-split-vector-halves | FileCheck %s

// One loop for both cores, which carries what differs twice; a local buffer that differs is there
// twice too.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[A0:.*]] = memref.alloc
// CHECK-NEXT: %[[A1:.*]] = memref.alloc
// CHECK: %[[SUMS:.*]]:3 = scf.for {{.*}} iter_args(%[[S0:.*]] = %{{.*}}, %[[COMMON:.*]] = %{{.*}}, %[[S1:.*]] = %{{.*}}) -> (i32, i32, i32)
// CHECK: %[[N0:.*]] = arith.addi %[[S0]]
// CHECK: %[[N1:.*]] = arith.addi %[[S1]]
// CHECK: %[[C:.*]] = arith.addi %[[COMMON]]
// CHECK: scf.yield %[[N0]], %[[C]], %[[N1]]
// CHECK: memref.store %[[SUMS]]#0, %[[A0]]
// CHECK: memref.store %[[SUMS]]#2, %[[A1]]
// CHECK: memref.copy %[[A0]]
// CHECK: memref.copy %[[A1]]
// CHECK: memref.store %[[SUMS]]#1, %arg0
// CHECK-NOT: memref.store
func.func @kernel(%memory: memref<8xi32>, %target: memref<1xi32>, %n: i32) attributes {mix_mode = "mix"} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %core = "tt.extern_elementwise"(%zero) <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  %buffer = memref.alloc() : memref<1xi32>
  %sums:2 = scf.for %i = %zero to %n step %one iter_args(%own = %zero, %common = %zero) -> (i32, i32) : i32 {
    %next = arith.addi %own, %core : i32
    %both = arith.addi %common, %one : i32
    scf.yield %next, %both : i32, i32
  }
  memref.store %sums#0, %buffer[%c0] : memref<1xi32>
  memref.copy %buffer, %target : memref<1xi32> to memref<1xi32>
  memref.store %sums#1, %memory[%c0] : memref<8xi32>
  return
}
