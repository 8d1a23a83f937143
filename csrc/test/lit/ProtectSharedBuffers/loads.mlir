// RUN: tdist-opt %s --tdist-protect-shared-buffers | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK: bufferization.to_tensor %{{.*}} restrict : memref<16xf32>
func.func @kernel(%source: memref<16xf32>, %i: index) -> (tensor<16xf32>, f32) {
  %buffer = memref.alloc() : memref<16xf32>
  memref.copy %source, %buffer : memref<16xf32> to memref<16xf32>
  %tensor = bufferization.to_tensor %buffer restrict writable : memref<16xf32>
  %word = memref.load %buffer[%i] : memref<16xf32>
  return %tensor, %word : tensor<16xf32>, f32
}
