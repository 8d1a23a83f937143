// RUN: tdist-opt %s --tdist-plan-memory | FileCheck %s

// Both tiles, one of them made in a loop, come from one block that is taken and given back once.
// CHECK: func.func private @tdist_sim_alloc(i64, i64) -> (!llvm.ptr {llvm.noalias})
// CHECK-LABEL: func.func @kernel
// CHECK: %[[ALIGN:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(8192 : i64)
// CHECK: %[[BLOCK:.*]] = call @tdist_sim_alloc(%[[ALIGN]], %[[BYTES]])
// CHECK: llvm.getelementptr %[[BLOCK]][0]
// CHECK: llvm.getelementptr %[[BLOCK]][4096]
// CHECK: scf.for
// CHECK-NOT: alloc
// CHECK: call @tdist_sim_free(%[[BLOCK]])
// CHECK-NEXT: return
func.func @kernel(%in: memref<1024xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<1024xf32>
  memref.copy %in, %a : memref<1024xf32> to memref<1024xf32>
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<1024xf32>
    memref.copy %a, %b : memref<1024xf32> to memref<1024xf32>
    memref.copy %b, %in : memref<1024xf32> to memref<1024xf32>
  }
  return
}
