// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --opt-level=3 --emit-llvm %t.3.ll
// RUN: FileCheck %s < %t.3.ll

// The word's address is the same in each iteration and nothing in the loop stores, but another rank
// may, while this one waits: the load must stay behind the wait, inside the loop.
// CHECK-LABEL: define {{.*}}void @tdist_kernel_entry
// CHECK: [[LOOP:[.a-z0-9_]+]]:
// CHECK: call i32 @tdist_sim_wait_i32
// CHECK-NEXT: load i32, ptr
// CHECK: br i1 {{.*}}label %[[LOOP]]
// CHECK: store i32
// CHECK: ret void
func.func @kernel(%data: memref<?xi32>, %signal: memref<?xi32>, %n: i32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = arith.constant 0 : index
  %signal_index = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %address = arith.index_cast %signal_index : index to i64
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%so_far = %c0) -> (i32) : i32 {
    %token = "tt.extern_elementwise"(%address, %c1, %i, %c1, %c1)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i32"}> : (i64, i32, i32, i32, i32) -> i32
    %zero = "tt.extern_elementwise"(%token)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
    %offset = arith.index_cast %zero : i64 to index
    %ready = memref.reinterpret_cast %data to offset: [%offset], sizes: [1], strides: [1]
        : memref<?xi32> to memref<1xi32, strided<[1], offset: ?>>
    %word = memref.load %ready[%first] : memref<1xi32, strided<[1], offset: ?>>
    %next = arith.addi %so_far, %word : i32
    scf.yield %next : i32
  }
  memref.store %sum, %data[%first] : memref<?xi32>
  return
}
