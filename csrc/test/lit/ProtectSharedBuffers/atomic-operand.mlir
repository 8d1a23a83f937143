// RUN: tdist-opt %s --tdist-protect-shared-buffers | FileCheck %s

// The atomic reads the buffer of %tensor behind its back, through a view, so nothing may be computed
// in place there.
// CHECK-LABEL: func.func @kernel
// CHECK: bufferization.to_tensor %{{.*}} restrict : memref<16xi32>
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<4xi32>, %source: memref<16xi32>) -> tensor<16xi32> {
  %value = memref.alloc() : memref<16xi32>
  memref.copy %source, %value : memref<16xi32> to memref<16xi32>
  %tensor = bufferization.to_tensor %value restrict writable : memref<16xi32>
  %part = memref.subview %value[0] [4] [1] : memref<16xi32> to memref<4xi32, strided<[1]>>
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %part : memref<4xi32>, memref<4xi32, strided<[1]>>) outs(%target : memref<4xi32>)
      attrs = {GenericAtomicRMW = "xor", MemSemantic = "acq_rel", MemSyncScope = "gpu", Software} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %new = arith.xori %old, %in : i32
    linalg.yield %new : i32
  }
  return %tensor : tensor<16xi32>
}
