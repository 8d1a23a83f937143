// RUN: tdist-opt %s --tdist-to-sim --mlir-print-debuginfo -o %t.mlir
// RUN: tdist-codegen %t.mlir --debug-info -o %t.o
// RUN: llvm-dwarfdump --debug-line %t.o | FileCheck %s

// CHECK: name: "kernel.py"
// CHECK: 0x{{[0-9a-f]+}} 21 5
func.func @kernel(%x: memref<?xf32>,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index loc("kernel.py":20:5)
  %f = memref.load %x[%c0] : memref<?xf32> loc("kernel.py":21:5)
  %sum = arith.addf %f, %f : f32 loc("kernel.py":21:5)
  memref.store %sum, %x[%c0] : memref<?xf32> loc("kernel.py":22:5)
  return loc("kernel.py":23:1)
} loc("kernel.py":19:1)
