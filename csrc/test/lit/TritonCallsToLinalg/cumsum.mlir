// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg --canonicalize | FileCheck %s

// The scanned dimension is the outermost loop and starts at its second element.
// CHECK-NOT: @triton_cumsum
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[IN:.*]]: tensor<8x32xf32>)
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[LENGTH:.*]] = arith.constant 32 : index
// CHECK: scf.for %[[K:[a-z0-9]+]] = %[[ONE]] to %[[LENGTH]] step %[[ONE]] iter_args(%{{.*}} = %[[IN]])
// CHECK: scf.for %[[ROW:[a-z0-9]+]] =
// CHECK: %[[BEFORE:.*]] = arith.subi %[[K]], %[[ONE]]
// CHECK: %[[A:.*]] = tensor.extract %{{.*}}[%[[ROW]], %[[BEFORE]]]
// CHECK: %[[B:.*]] = tensor.extract %{{.*}}[%[[ROW]], %[[K]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: tensor.insert %[[SUM]] into %{{.*}}[%[[ROW]], %[[K]]]
func.func private @triton_cumsum_0(tensor<8x32xf32>, i32, i1) -> tensor<8x32xf32>
func.func @kernel(%in: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %dim = arith.constant 1 : i32
  %reverse = arith.constant false
  %0 = call @triton_cumsum_0(%in, %dim, %reverse) : (tensor<8x32xf32>, i32, i1) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
