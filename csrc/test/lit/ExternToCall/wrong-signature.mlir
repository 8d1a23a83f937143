// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:12:3: error: 'tdist_delta' is called as '(i64, i32) -> i64', but its type is '(i64, i32, i32) -> i64'
func.func @kernel(%address: i64, %pe: i32) {
  %0 = "tt.extern_elementwise"(%address, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}>
      : (i64, i32) -> i64 loc("kernel.py":12:3)
  return
}
