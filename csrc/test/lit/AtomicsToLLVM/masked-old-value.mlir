// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// Only lanes under the mask are touched, and nothing is read behind it: the other lanes give zero.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: memref<16xi32>, %[[LANES:[a-z0-9]+]]: index
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<16xi32>
// CHECK-NOT: memref.copy
// CHECK: linalg.fill ins(%{{.*}} : i32) outs(%[[RESULT]] : memref<16xi32>)
// CHECK: %[[PART:.*]] = memref.subview %[[RESULT]][0] [%[[LANES]]] [1]
// CHECK: %[[OLD:.*]] = llvm.atomicrmw add
// CHECK: memref.store %[[OLD]], %[[PART]]
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<16xi32>, %value: memref<16xi32>, %lanes: index) -> tensor<16xi32> {
  %to = memref.subview %target[0] [%lanes] [1] : memref<16xi32> to memref<?xi32, strided<[1]>>
  %from = memref.subview %value[0] [%lanes] [1] : memref<16xi32> to memref<?xi32, strided<[1]>>
  %result = memref.alloc() : memref<16xi32>
  memref.copy %target, %result : memref<16xi32> to memref<16xi32> loc("k.py":1:1)
  %tensor = bufferization.to_tensor %result restrict writable : memref<16xi32>
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%to, %from : memref<?xi32, strided<[1]>>, memref<?xi32, strided<[1]>>)
      outs(%to : memref<?xi32, strided<[1]>>)
      attrs = {GenericAtomicRMW = "add", MemSemantic = "acq_rel", MemSyncScope = "gpu"} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %sum = arith.addi %old, %in : i32
    linalg.yield %sum : i32
  } loc("k.py":1:1)
  return %tensor : tensor<16xi32>
}
