// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-DAG: %[[POINTER:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i32
// CHECK-DAG: %[[VALUE:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK: llvm.atomicrmw add %[[POINTER]], %[[VALUE]] acq_rel
// CHECK-NOT: linalg.generic
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<16xi32>, %value: memref<16xi32>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %value : memref<16xi32>, memref<16xi32>) outs(%target : memref<16xi32>)
      attrs = {GenericAtomicRMW = "add", MemSemantic = "acq_rel", MemSyncScope = "gpu"} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %sum = arith.addi %old, %in : i32
    linalg.yield %sum : i32
  }
  return
}
