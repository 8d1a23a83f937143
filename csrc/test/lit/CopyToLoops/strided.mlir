// RUN: tdist-opt %s --tdist-convert-copy-to-loops | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[FROM:.*]]: memref<?x32xf32, strided<[?, ?], offset: ?>>, %[[TO:.*]]: memref<?x32xf32, strided<[32, 1]>>)
// CHECK: %[[ROWS:.*]] = memref.dim %[[FROM]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[ROWS]]
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[VALUE:.*]] = memref.load %[[FROM]][%[[I]], %[[J]]]
// CHECK: memref.store %[[VALUE]], %[[TO]][%[[I]], %[[J]]]
// CHECK-NOT: memref.copy
func.func @kernel(%from: memref<?x32xf32, strided<[?, ?], offset: ?>>, %to: memref<?x32xf32, strided<[32, 1]>>) {
  memref.copy %from, %to : memref<?x32xf32, strided<[?, ?], offset: ?>> to memref<?x32xf32, strided<[32, 1]>>
  return
}
