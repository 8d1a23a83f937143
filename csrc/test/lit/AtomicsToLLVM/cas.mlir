// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// The adapter copies after the exchange, which would give the new value; Triton means the old one.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<1xi32>
// CHECK: %[[PAIR:.*]] = llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} acq_rel acquire
// CHECK: %[[OLD:.*]] = llvm.extractvalue %[[PAIR]][0]
// CHECK: memref.store %[[OLD]], %[[RESULT]]
// CHECK-NOT: memref.copy
// CHECK: bufferization.to_tensor %[[RESULT]]
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<1xi32>, %expected: memref<1xi32>, %desired: memref<1xi32>) -> tensor<1xi32> {
  linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %expected, %desired : memref<1xi32>, memref<1xi32>, memref<1xi32>) outs(%target : memref<1xi32>)
      attrs = {GenericAtomicRMW = "cas", MemSemantic = "acq_rel", MemSyncScope = "gpu", Software} {
  ^bb0(%old: i32, %e: i32, %d: i32, %out: i32):
    %same = arith.cmpi eq, %old, %e : i32
    %new = arith.select %same, %d, %old : i32
    linalg.yield %new : i32
  } loc("k.py":1:1)
  %result = memref.alloc() : memref<1xi32>
  memref.copy %target, %result : memref<1xi32> to memref<1xi32> loc("k.py":1:1)
  %tensor = bufferization.to_tensor %result restrict writable : memref<1xi32>
  return %tensor : tensor<1xi32>
}
