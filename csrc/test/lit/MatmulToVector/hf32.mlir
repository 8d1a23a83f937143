// RUN: tdist-opt %s --tdist-convert-matmul-to-vector="vector-bits=128 vector-registers=16" | FileCheck %s

// Both operands are rounded to 11 bits of mantissa before they are multiplied; the sum is not.
// CHECK-LABEL: func.func @dot
// CHECK-COUNT-2: arith.andi %{{.*}}, %c-4096_i32
// CHECK-NOT: arith.andi %{{.*}}, %c-4096_i32
func.func @dot(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) {
  linalg.matmul {input_precison = "hf32"} ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>)
                                          outs(%c : memref<4x4xf32>)
  return
}

// CHECK-LABEL: func.func @ieee
// CHECK-NOT: arith.andi
func.func @ieee(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) {
  linalg.matmul {input_precison = "ieee"} ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>)
                                          outs(%c : memref<4x4xf32>)
  return
}
