// RUN: tdist-opt %s --tdist-protect-shared-buffers | FileCheck %s

// A tile that is filled and copied into, in part, is for the tensor alone.
// CHECK-LABEL: func.func @kernel
// CHECK: bufferization.to_tensor %{{.*}} restrict writable : memref<16xf32>
func.func @kernel(%source: memref<?xf32>, %n: index) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %buffer = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%buffer : memref<16xf32>)
  %part = memref.subview %buffer[0] [%n] [1] : memref<16xf32> to memref<?xf32, strided<[1]>>
  memref.copy %source, %part : memref<?xf32> to memref<?xf32, strided<[1]>>
  %tensor = bufferization.to_tensor %buffer restrict writable : memref<16xf32>
  return %tensor : tensor<16xf32>
}
