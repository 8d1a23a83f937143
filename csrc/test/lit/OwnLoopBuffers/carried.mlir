// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-own-loop-buffers | FileCheck %s

// The body's result is copied to the loop's own buffer, so the next iteration may use its place.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[INIT:.*]]: memref<16xf32>
// CHECK: %[[HOME:.*]] = memref.alloc() : memref<16xf32>
// CHECK: memref.copy %[[INIT]], %[[HOME]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[HOME]])
// CHECK: %[[NEXT:.*]] = memref.alloc() : memref<16xf32>
// CHECK: "test.compute"
// CHECK: memref.copy %[[NEXT]], %[[HOME]]
// CHECK: scf.yield %[[HOME]]
func.func @kernel(%init: memref<16xf32>, %n: index) -> memref<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> memref<16xf32> {
    %next = memref.alloc() : memref<16xf32>
    "test.compute"(%x, %next) : (memref<16xf32>, memref<16xf32>) -> ()
    scf.yield %next : memref<16xf32>
  }
  return %0 : memref<16xf32>
}
