// RUN: tdist-opt %s --tdist-add-view-offsets --expand-strided-metadata | FileCheck %s

// CHECK-LABEL: func.func @address
// CHECK-SAME: (%[[ARRAY:.*]]: memref<?xi64>, %[[OFFSET:.*]]: index)
// CHECK-DAG: %[[SIZE:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %[[SIZE]]
// CHECK: %[[SUM:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: return %[[SUM]]
func.func @address(%array: memref<?xi64>, %offset: index) -> index {
  %view = memref.reinterpret_cast %array to offset: [%offset], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: ?>>
  %address = memref.extract_aligned_pointer_as_index %view
      : memref<1xi64, strided<[1], offset: ?>> -> index
  return %address : index
}
