// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call 2>&1 | FileCheck %s

// CHECK: kernel.py:12:3: error: tdist-opt has no function 'tdist_teleport'
func.func @kernel(%pe: i32) {
  %0 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_teleport"}>
      : (i32) -> i32 loc("kernel.py":12:3)
  return
}
