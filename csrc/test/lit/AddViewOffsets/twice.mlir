// RUN: tdist-opt %s --tdist-add-view-offsets --tdist-add-view-offsets | FileCheck %s

// CHECK-LABEL: func.func @address
// CHECK-COUNT-1: arith.addi
// CHECK-NOT: arith.addi
func.func @address(%array: memref<?xi32>) -> index {
  %view = memref.reinterpret_cast %array to offset: [16], sizes: [1], strides: [1]
      : memref<?xi32> to memref<1xi32, strided<[1], offset: 16>>
  %address = memref.extract_aligned_pointer_as_index %view
      : memref<1xi32, strided<[1], offset: 16>> -> index
  return %address : index
}
