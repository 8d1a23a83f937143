// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-split-vector-halves | FileCheck %s

// What depends on the core is there for core 0 and right behind it for core 1; the rest once.
// CHECK-LABEL: func.func @kernel
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: memref.store %arg1, %arg0[%c3]
// CHECK-NOT: memref.store %arg1, %arg0[%c3]
// CHECK: %[[I0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[I1:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: memref.store %arg1, %arg0[%[[I0]]]
// CHECK-NEXT: memref.store %arg1, %arg0[%[[I1]]]
// CHECK: scf.if
// CHECK: memref.store %arg1, %arg0[%c3]
// CHECK: scf.if
// CHECK: memref.store %arg1, %arg0[%c3]
func.func @kernel(%memory: memref<?xi32>, %value: i32) attributes {mix_mode = "mix"} {
  %zero = arith.constant 0 : i32
  %c3 = arith.constant 3 : index
  %core = "tt.extern_elementwise"(%zero) <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  memref.store %value, %memory[%c3] : memref<?xi32>
  %index = arith.index_cast %core : i32 to index
  memref.store %value, %memory[%index] : memref<?xi32>
  %first = arith.cmpi eq, %core, %zero : i32
  scf.if %first {
    memref.store %value, %memory[%c3] : memref<?xi32>
  }
  return
}

// A vector kernel has one core: the question is answered elsewhere.
// CHECK-LABEL: func.func @vector
// CHECK: tt.extern_elementwise
// CHECK: memref.store
// CHECK-NOT: memref.store
func.func @vector(%memory: memref<?xi32>, %value: i32) attributes {mix_mode = "aiv"} {
  %zero = arith.constant 0 : i32
  %core = "tt.extern_elementwise"(%zero) <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  %index = arith.index_cast %core : i32 to index
  memref.store %value, %memory[%index] : memref<?xi32>
  return
}
