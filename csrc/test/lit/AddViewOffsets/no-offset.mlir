// RUN: tdist-opt %s --tdist-add-view-offsets | FileCheck %s

// CHECK-LABEL: func.func @address
// CHECK-NEXT: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK-NEXT: return %[[BASE]]
func.func @address(%array: memref<?xf32>) -> index {
  %address = memref.extract_aligned_pointer_as_index %array : memref<?xf32> -> index
  return %address : index
}
