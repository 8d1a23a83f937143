// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[IN:.*]]: tensor<4x16xf16>)
// CHECK: %[[LAST:.*]] = arith.constant 15 : index
// CHECK: linalg.generic
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: %[[MIRRORED:.*]] = arith.subi %[[LAST]], %[[COLUMN]]
// CHECK: tensor.extract %[[IN]][%[[ROW]], %[[MIRRORED]]]
func.func private @triton_flip(tensor<4x16xf16>, i64) -> tensor<4x16xf16>
func.func @kernel(%in: tensor<4x16xf16>) -> tensor<4x16xf16> {
  %dim = arith.constant 1 : i64
  %0 = call @triton_flip(%in, %dim) : (tensor<4x16xf16>, i64) -> tensor<4x16xf16>
  return %0 : tensor<4x16xf16>
}
