// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// Expected and desired are one value, as in a spin that only looks: it is given up once.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT: bufferization.to_memref
// CHECK: %[[ONE:.*]] = tensor.extract %arg1
// CHECK: %[[SAME:.*]] = tensor.extract %arg1
// CHECK: llvm.cmpxchg %{{.*}}, %[[ONE]], %[[SAME]] acq_rel acquire
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<1xi32>, %both: tensor<1xi32>) {
  %memref = bufferization.to_memref %both : memref<1xi32>
  linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %memref, %memref : memref<1xi32>, memref<1xi32>, memref<1xi32>) outs(%target : memref<1xi32>)
      attrs = {GenericAtomicRMW = "cas", MemSemantic = "acq_rel", MemSyncScope = "gpu", Software} {
  ^bb0(%old: i32, %e: i32, %d: i32, %out: i32):
    %same = arith.cmpi eq, %old, %e : i32
    %new = arith.select %same, %d, %old : i32
    linalg.yield %new : i32
  }
  return
}
