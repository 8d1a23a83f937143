// RUN: tdist-opt %s --tdist-convert-atomics-to-llvm | FileCheck %s

// A compare-and-exchange that fails releases nothing.
// CHECK-LABEL: func.func @kernel
// CHECK: llvm.atomicrmw xchg %{{.*}}, %{{.*}} release
// CHECK: llvm.atomicrmw _or %{{.*}}, %{{.*}} acquire
// CHECK: llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} release monotonic
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<1xi64>, %a: memref<1xi64>, %b: memref<1xi64>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %a : memref<1xi64>, memref<1xi64>) outs(%target : memref<1xi64>)
      attrs = {GenericAtomicRMW = "exch", MemSemantic = "release", MemSyncScope = "sys"} {
  ^bb0(%old: i64, %in: i64, %out: i64):
    linalg.yield %in : i64
  }
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %a : memref<1xi64>, memref<1xi64>) outs(%target : memref<1xi64>)
      attrs = {GenericAtomicRMW = "or", MemSemantic = "acquire", MemSyncScope = "sys"} {
  ^bb0(%old: i64, %in: i64, %out: i64):
    %new = arith.ori %old, %in : i64
    linalg.yield %new : i64
  }
  linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %a, %b : memref<1xi64>, memref<1xi64>, memref<1xi64>) outs(%target : memref<1xi64>)
      attrs = {GenericAtomicRMW = "cas", MemSemantic = "release", MemSyncScope = "sys", Software} {
  ^bb0(%old: i64, %e: i64, %d: i64, %out: i64):
    %same = arith.cmpi eq, %old, %e : i64
    %new = arith.select %same, %d, %old : i64
    linalg.yield %new : i64
  }
  return
}
