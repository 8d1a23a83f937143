// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// The kernel's own load of the same address is another line: it stays a load.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[LOADED:.*]] = memref.alloc() : memref<16xi32>
// CHECK: memref.copy %{{.*}}, %[[LOADED]]
// CHECK: llvm.atomicrmw add
// CHECK-NOT: memref.store
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<16xi32>, %value: memref<16xi32>) -> tensor<16xi32> {
  %loaded = memref.alloc() : memref<16xi32>
  memref.copy %target, %loaded : memref<16xi32> to memref<16xi32> loc("k.py":1:1)
  %tensor = bufferization.to_tensor %loaded restrict writable : memref<16xi32>
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %value : memref<16xi32>, memref<16xi32>) outs(%target : memref<16xi32>)
      attrs = {GenericAtomicRMW = "add", MemSemantic = "acq_rel", MemSyncScope = "gpu"} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %sum = arith.addi %old, %in : i32
    linalg.yield %sum : i32
  } loc("k.py":2:1)
  return %tensor : tensor<16xi32>
}
