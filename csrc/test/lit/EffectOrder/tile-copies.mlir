// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --opt-level=3 --emit-llvm %t.3.ll
// RUN: FileCheck %s < %t.3.ll

// A tile is loaded before and after a barrier: the second load is not the first one over again.
// CHECK-LABEL: define {{.*}}void @tdist_kernel_entry
// CHECK: load <{{[0-9]+}} x float>, ptr
// CHECK: call i32 @tdist_sim_barrier_all
// CHECK: load <{{[0-9]+}} x float>, ptr
// CHECK: fadd <{{[0-9]+}} x float>
// CHECK: ret void
func.func @kernel(%data: memref<?xf32>, %out: memref<?xf32>,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : i32
  %view = memref.reinterpret_cast %data to offset: [0], sizes: [16], strides: [1]
      : memref<?xf32> to memref<16xf32, strided<[1]>>
  %before = memref.alloc() : memref<16xf32>
  memref.copy %view, %before : memref<16xf32, strided<[1]>> to memref<16xf32>
  %x = bufferization.to_tensor %before restrict writable : memref<16xf32>
  %done = "tt.extern_elementwise"(%c0)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all"}> : (i32) -> i32
  %after = memref.alloc() : memref<16xf32>
  memref.copy %view, %after : memref<16xf32, strided<[1]>> to memref<16xf32>
  %y = bufferization.to_tensor %after restrict writable : memref<16xf32>
  %sum = arith.addf %x, %y : tensor<16xf32>
  %to = memref.reinterpret_cast %out to offset: [0], sizes: [16], strides: [1]
      : memref<?xf32> to memref<16xf32, strided<[1]>>
  bufferization.materialize_in_destination %sum in writable %to : (tensor<16xf32>, memref<16xf32, strided<[1]>>) -> ()
  return
}
