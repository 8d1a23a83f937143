// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 2>&1 | FileCheck %s

// CHECK: kernel.py:3:1: error: the pointer is not one of the kernel's arguments plus an offset
// CHECK: kernel.py:4:1: error: sub_vec_num() is a constant
func.func @kernel(%address: i64, %pe: i32) attributes {mix_mode = "mix"} {
  %0 = "tt.extern_elementwise"(%address, %pe, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_int_p"}> : (i64, i32, i32) -> i32 loc("kernel.py":3:1)
  %1 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_sub_vec_num"}> : (i32) -> i32 loc("kernel.py":4:1)
  return
}
