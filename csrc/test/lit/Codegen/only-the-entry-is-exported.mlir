// RUN: tdist-opt %s --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir -o %t.o
// RUN: llvm-nm --defined-only --extern-only %t.o | FileCheck %s

// CHECK: T tdist_kernel_entry
// CHECK-NOT: {{.}}
func.func @kernel(%gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  return
}
