// RUN: tdist-opt %s --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir -o %t.o
// RUN: llvm-objdump -d %t.o | FileCheck %s

// RUN: tdist-codegen %t.mlir --fp-fusion -o %t.fused.o
// RUN: llvm-objdump -d %t.fused.o | FileCheck %s --check-prefix=FUSED

// A product and a sum round twice, as on an NPU; only math.fma is fused.
// CHECK-NOT: fmadd
// FUSED: fmadd
func.func @kernel(%x: memref<?xf32>,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index
  %f = memref.load %x[%c0] : memref<?xf32>
  %product = arith.mulf %f, %f : f32
  %sum = arith.addf %product, %f : f32
  memref.store %sum, %x[%c0] : memref<?xf32>
  return
}
