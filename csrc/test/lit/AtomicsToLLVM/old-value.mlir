// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// The copy before the update stands for the old value: it must come from the instruction itself.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[RESULT:.*]] = memref.alloc() : memref<1xi32>
// CHECK-NOT: memref.copy
// CHECK: %[[OLD:.*]] = llvm.atomicrmw max %{{.*}}, %{{.*}} monotonic
// CHECK: memref.store %[[OLD]], %[[RESULT]]
// CHECK: %[[TENSOR:.*]] = bufferization.to_tensor %[[RESULT]]
// CHECK: tensor.extract %[[TENSOR]]
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<1xi32>, %value: memref<1xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %result = memref.alloc() : memref<1xi32>
  memref.copy %target, %result : memref<1xi32> to memref<1xi32> loc("k.py":1:1)
  %tensor = bufferization.to_tensor %result restrict writable : memref<1xi32>
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %value : memref<1xi32>, memref<1xi32>) outs(%target : memref<1xi32>)
      attrs = {GenericAtomicRMW = "max", MemSemantic = "relaxed", MemSyncScope = "gpu"} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %max = arith.maxsi %old, %in : i32
    linalg.yield %max : i32
  } loc("k.py":1:1)
  %0 = tensor.extract %tensor[%c0] : tensor<1xi32>
  return %0 : i32
}
