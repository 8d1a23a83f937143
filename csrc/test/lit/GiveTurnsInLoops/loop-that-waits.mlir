// RUN: tdist-opt %s --tdist-give-turns-in-loops | FileCheck %s

// CHECK: func.func private @tdist_sim_yield(!llvm.ptr)
// CHECK-DAG: llvm.mlir.global internal constant @[[FILE:tdist_loop_file_.*]]("k.py
// CHECK-DAG: llvm.mlir.global internal constant @[[PLACE:tdist_loop_loc_[0-9]+]]
// CHECK-LABEL: func.func @kernel
// CHECK: %[[COUNTER:.*]] = memref.alloca() : memref<i32>
// CHECK: memref.store %{{.*}}, %[[COUNTER]]
// CHECK: scf.while
// CHECK: } do {
// CHECK: %[[LEFT:.*]] = arith.subi
// CHECK: %[[TIME:.*]] = arith.cmpi eq, %[[LEFT]]
// CHECK: %[[NEXT:.*]] = scf.if %[[TIME]]
// CHECK-NEXT: %[[LOOP:.*]] = llvm.mlir.addressof @[[PLACE]]
// CHECK-NEXT: call @tdist_sim_yield(%[[LOOP]])
// CHECK: else
// CHECK-NEXT: scf.yield %[[LEFT]]
// CHECK: memref.store %[[NEXT]], %[[COUNTER]]
// CHECK-NEXT: scf.yield
#map = affine_map<(d0) -> (d0)>
func.func @kernel(%lock: memref<1xi32>, %expected: memref<1xi32>, %desired: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
        ins(%lock, %expected, %desired : memref<1xi32>, memref<1xi32>, memref<1xi32>) outs(%lock : memref<1xi32>)
        attrs = {GenericAtomicRMW = "cas", MemSemantic = "acq_rel", MemSyncScope = "gpu", Software} {
    ^bb0(%old: i32, %e: i32, %d: i32, %out: i32):
      %same = arith.cmpi eq, %old, %e : i32
      %new = arith.select %same, %d, %old : i32
      linalg.yield %new : i32
    } loc("k.py":1:1)
    %result = memref.alloc() : memref<1xi32>
    memref.copy %lock, %result : memref<1xi32> to memref<1xi32> loc("k.py":1:1)
    %tensor = bufferization.to_tensor %result restrict writable : memref<1xi32>
    %old = tensor.extract %tensor[%c0] : tensor<1xi32>
    %taken = arith.cmpi eq, %old, %c1 : i32
    scf.condition(%taken)
  } do {
    scf.yield
  } loc("k.py":1:1)
  return
}
