// RUN: tdist-opt %s --tdist-own-loop-buffers | FileCheck %s

// Both values are saved before either buffer is written.
// CHECK-LABEL: func.func @kernel
// CHECK: %[[A:.*]] = memref.alloc()
// CHECK: %[[B:.*]] = memref.alloc()
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %[[A]], %[[Y:.*]] = %[[B]])
// CHECK: %[[OLDY:.*]] = memref.alloc()
// CHECK: memref.copy %[[Y]], %[[OLDY]]
// CHECK: %[[OLDX:.*]] = memref.alloc()
// CHECK: memref.copy %[[X]], %[[OLDX]]
// CHECK: memref.copy %[[OLDY]], %[[A]]
// CHECK: memref.copy %[[OLDX]], %[[B]]
// CHECK: scf.yield %[[A]], %[[B]]
func.func @kernel(%a: memref<16xf32>, %b: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (memref<16xf32>, memref<16xf32>) {
    scf.yield %y, %x : memref<16xf32>, memref<16xf32>
  }
  return
}
