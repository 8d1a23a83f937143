// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call | FileCheck %s

// CHECK-COUNT-2: llvm.mlir.global internal constant @tdist_loc_
// CHECK-NOT: llvm.mlir.global internal constant @tdist_loc_
// CHECK-LABEL: func.func @kernel
func.func @kernel(%zero: i32) {
  %0 = "tt.extern_elementwise"(%zero)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_quiet"}> : (i32) -> i32 loc("a.py":1:1)
  %1 = "tt.extern_elementwise"(%zero)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_fence"}> : (i32) -> i32 loc("a.py":1:1)
  %2 = "tt.extern_elementwise"(%zero)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_fence"}> : (i32) -> i32 loc("a.py":2:1)
  return
}
