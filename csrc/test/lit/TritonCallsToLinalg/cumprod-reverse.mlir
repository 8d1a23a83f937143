// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-DAG: %[[LAST:.*]] = arith.constant 7 : index
// CHECK-DAG: %[[LENGTH:.*]] = arith.constant 8 : index
// CHECK: scf.for %[[K:[a-z0-9]+]] =
// CHECK: %[[AT:.*]] = arith.subi %[[LAST]], %[[K]]
// CHECK: %[[BEFORE:.*]] = arith.subi %[[LENGTH]], %[[K]]
// CHECK: %[[A:.*]] = tensor.extract %{{.*}}[%[[BEFORE]]]
// CHECK: %[[B:.*]] = tensor.extract %{{.*}}[%[[AT]]]
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[A]], %[[B]] : i32
// CHECK: tensor.insert %[[PRODUCT]] into %{{.*}}[%[[AT]]]
func.func private @triton_cumprod_0(tensor<8xi32>, i32, i1) -> tensor<8xi32>
func.func @kernel(%in: tensor<8xi32>) -> tensor<8xi32> {
  %dim = arith.constant 0 : i32
  %reverse = arith.constant true
  %0 = call @triton_cumprod_0(%in, %dim, %reverse) : (tensor<8xi32>, i32, i1) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}
