// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --opt-level=3 --emit-llvm %t.3.ll
// RUN: FileCheck %s < %t.3.ll

// Each iteration waits, and then loads a tile whose address does not change: neither the load nor
// the store of its result may leave the loop or pass the barrier.
// CHECK-LABEL: define {{.*}}void @tdist_kernel_entry
// CHECK: [[LOOP:[a-z0-9._]+]]:
// CHECK-NOT: llvm.memcpy
// CHECK: call i32 @tdist_sim_wait_i32
// CHECK: load <{{.*}} x float>, ptr
// CHECK: store <{{.*}} x float>
// CHECK: call i32 @tdist_sim_barrier_all
// CHECK: br {{.*}}label %[[LOOP]]
// CHECK: ret void
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%data: memref<?xf32>, %signal: memref<?xi32>, %out: memref<?xf32>, %n: i32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %signal_index = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %address = arith.index_cast %signal_index : index to i64
  scf.for %i = %c0 to %n step %c1 : i32 {
    %token = "tt.extern_elementwise"(%address, %c1, %i, %c1, %c1)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i32"}> : (i64, i32, i32, i32, i32) -> i32
    %zero = "tt.extern_elementwise"(%token)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
    %offset = arith.index_cast %zero : i64 to index
    %ready = memref.reinterpret_cast %data to offset: [%offset], sizes: [256], strides: [1]
        : memref<?xf32> to memref<256xf32, strided<[1], offset: ?>>
    %tile = memref.alloc() : memref<256xf32>
    memref.copy %ready, %tile : memref<256xf32, strided<[1], offset: ?>> to memref<256xf32>
    %x = bufferization.to_tensor %tile restrict writable : memref<256xf32>
    %twice = arith.addf %x, %x : tensor<256xf32>
    %view = memref.reinterpret_cast %out to offset: [0], sizes: [256], strides: [1]
        : memref<?xf32> to memref<256xf32, strided<[1]>>
    bufferization.materialize_in_destination %twice in writable %view : (tensor<256xf32>, memref<256xf32, strided<[1]>>) -> ()
    %done = "tt.extern_elementwise"(%c0)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all"}> : (i32) -> i32
  }
  return
}
