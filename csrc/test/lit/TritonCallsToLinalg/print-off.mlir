// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg=print=false | FileCheck %s

// CHECK-NOT: print
// CHECK: func.func @kernel
// CHECK-NEXT: return
func.func private @triton_print_0(tensor<16xf16>) attributes {hex = false, prefix = " v: "}
func.func @kernel(%v: tensor<16xf16>) {
  call @triton_print_0(%v) : (tensor<16xf16>) -> ()
  return
}
