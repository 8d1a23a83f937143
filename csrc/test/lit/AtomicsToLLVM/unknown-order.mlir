// RUN: not tdist-opt %s --tdist-convert-atomics-to-llvm 2>&1 | FileCheck %s

// CHECK: k.py:3:1: error: atomic_add has memory order "seq_cst": expected relaxed, acquire, release or acq_rel
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%target: memref<1xi32>, %value: memref<1xi32>) {
  linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%target, %value : memref<1xi32>, memref<1xi32>) outs(%target : memref<1xi32>)
      attrs = {GenericAtomicRMW = "add", MemSemantic = "seq_cst", MemSyncScope = "gpu"} {
  ^bb0(%old: i32, %in: i32, %out: i32):
    %sum = arith.addi %old, %in : i32
    linalg.yield %sum : i32
  } loc("k.py":3:1)
  return
}
