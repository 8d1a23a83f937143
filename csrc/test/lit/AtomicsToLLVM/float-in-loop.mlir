// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// No instruction adds 16-bit floats: a loop of compare-and-exchange around the kernel's arithmetic.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[FIRST:.*]] = llvm.load %[[POINTER:.*]] atomic monotonic {alignment = 2 : i64} : !llvm.ptr -> i16
// CHECK: scf.while (%[[SEEN:.*]] = %[[FIRST]]) : (i16) -> i16
// CHECK: %[[OLD:.*]] = arith.bitcast %[[SEEN]] : i16 to f16
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %{{.*}} : f16
// CHECK: %[[NEW:.*]] = arith.bitcast %[[SUM]] : f16 to i16
// CHECK: llvm.cmpxchg %[[POINTER]], %[[SEEN]], %[[NEW]] acq_rel acquire
// CHECK: scf.condition
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<16xf16>, %value: memref<16xf16>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %value : memref<16xf16>, memref<16xf16>) outs(%target : memref<16xf16>)
      attrs = {GenericAtomicRMW = "fadd", MemSemantic = "acq_rel", MemSyncScope = "gpu"} {
  ^bb0(%old: f16, %in: f16, %out: f16):
    %sum = arith.addf %old, %in : f16
    linalg.yield %sum : f16
  }
  return
}
