// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: return %[[ZERO]]
func.func @kernel(%unused: i32) -> i32 {
  %half = "tt.extern_elementwise"(%unused)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  return %half : i32
}
