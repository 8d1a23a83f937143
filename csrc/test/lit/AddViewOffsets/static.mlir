// RUN: tdist-opt %s --tdist-add-view-offsets | FileCheck %s

// Slot 16 of an i32 array is 64 bytes from its start.
// CHECK-LABEL: func.func @address
// CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[BYTES:.*]] = arith.constant 64 : index
// CHECK: %[[SUM:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: return %[[SUM]]
func.func @address(%array: memref<?xi32>) -> index {
  %view = memref.reinterpret_cast %array to offset: [16], sizes: [1], strides: [1]
      : memref<?xi32> to memref<1xi32, strided<[1], offset: 16>>
  %address = memref.extract_aligned_pointer_as_index %view
      : memref<1xi32, strided<[1], offset: 16>> -> index
  return %address : index
}
