// RUN: tdist-opt %s --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir -o %t.o
// RUN: llvm-nm --undefined-only %t.o | FileCheck %s --allow-empty

// Conversions and arithmetic of 16-bit floats need nothing but the host's instructions.
// CHECK-NOT: __
func.func @kernel(%x: memref<?xf32>, %h: memref<?xf16>, %b: memref<?xbf16>, %i: memref<?xi64>,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index
  %f = memref.load %x[%c0] : memref<?xf32>
  %n = memref.load %i[%c0] : memref<?xi64>
  %half = arith.truncf %f : f32 to f16
  %brain = arith.truncf %f : f32 to bf16
  %h2 = arith.addf %half, %half : f16
  %b2 = arith.mulf %brain, %brain : bf16
  %nh = arith.sitofp %n : i64 to f16
  %nb = arith.uitofp %n : i64 to bf16
  %h3 = arith.divf %h2, %nh : f16
  %b3 = arith.maximumf %b2, %nb : bf16
  memref.store %h3, %h[%c0] : memref<?xf16>
  memref.store %b3, %b[%c0] : memref<?xbf16>
  %back = arith.fptosi %b3 : bf16 to i64
  memref.store %back, %i[%c0] : memref<?xi64>
  return
}
