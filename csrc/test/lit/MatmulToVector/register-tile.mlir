// RUN: tdist-opt %s --pass-pipeline='builtin.module(func.func(tdist-convert-matmul-to-vector{vector-bits=256 vector-registers=16},canonicalize))' | FileCheck %s

// 4 rows of 2 vectors: 8 of 16 registers hold sums, which stay there for the whole inner dimension.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[A:.*]]: memref<64x32xf32>, %[[B:.*]]: memref<32x128xf32>, %[[C:.*]]: memref<64x128xf32>)
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[COLUMNS:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[DEPTH:.*]] = arith.constant 32 : index
// CHECK: scf.for {{.*}} step %[[COLUMNS]]
// CHECK: scf.for {{.*}} step %[[ROWS]]
// CHECK-COUNT-8: vector.load %[[C]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[DEPTH]]
// CHECK-COUNT-2: vector.load %[[B]][%[[K]]
// CHECK-NOT: vector.store
// CHECK-COUNT-8: vector.fma
// CHECK: scf.yield
// CHECK-COUNT-8: vector.store %{{.*}}, %[[C]]
func.func @kernel(%a: memref<64x32xf32>, %b: memref<32x128xf32>, %c: memref<64x128xf32>) {
  linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x128xf32>) outs(%c : memref<64x128xf32>)
  return
}
