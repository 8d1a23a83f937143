// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-triton-calls-to-linalg --canonicalize | FileCheck %s

// A value outside of all bins adds nothing, and is not used as an index.
// CHECK-LABEL: func.func @kernel
// CHECK-DAG: %[[BINS:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK: linalg.fill
// CHECK: scf.for
// CHECK: %[[BIN:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[BIN]], %[[BINS]]
// CHECK: %[[AT:.*]] = arith.select %[[INSIDE]], %[[BIN]], %[[FIRST]]
// CHECK: tensor.extract %{{.*}}[%[[AT]]]
// CHECK: tensor.insert %{{.*}} into %{{.*}}[%[[AT]]]
func.func @kernel(%in: tensor<64xi32>) -> tensor<16xi32> {
  %0 = "hfusion.histogram"(%in) <{num_bins = 16 : i64}> : (tensor<64xi32>) -> tensor<16xi32>
  return %0 : tensor<16xi32>
}
