// RUN: tdist-opt %s --tdist-add-view-offsets --expand-strided-metadata --canonicalize | FileCheck %s

// The subview starts 3 elements behind a view that starts 8 elements behind the array.
// CHECK-LABEL: func.func @address
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 44 : index
// CHECK-DAG: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[SUM:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: return %[[SUM]]
func.func @address(%array: memref<?xf32>) -> index {
  %view = memref.reinterpret_cast %array to offset: [8], sizes: [16], strides: [1]
      : memref<?xf32> to memref<16xf32, strided<[1], offset: 8>>
  %part = memref.subview %view[3] [4] [1]
      : memref<16xf32, strided<[1], offset: 8>> to memref<4xf32, strided<[1], offset: 11>>
  %cast = memref.cast %part
      : memref<4xf32, strided<[1], offset: 11>> to memref<?xf32, strided<[1], offset: 11>>
  %address = memref.extract_aligned_pointer_as_index %cast
      : memref<?xf32, strided<[1], offset: 11>> -> index
  return %address : index
}
