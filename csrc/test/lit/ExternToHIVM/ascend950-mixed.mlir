// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-lower-to-hivm=soc=Ascend950PR_9589 2>&1 | FileCheck %s

// CHECK: kernel.py:2:1: error: a kernel with tl.dot cannot both signal or copy and use the result of a call (wait_i32) on Ascend950PR_9589
func.func @kernel(%signal: memref<?xi32>, %count: i32) attributes {mix_mode = "mix"} {
  %set = arith.constant 1 : i32
  %pointer = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %address = arith.index_cast %pointer : index to i64
  %token = "tt.extern_elementwise"(%address, %count, %count, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i32"}>
      : (i64, i32, i32, i32, i32) -> i32 loc("kernel.py":2:1)
  %0 = "tt.extern_elementwise"(%address, %count, %count, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i32"}> : (i64, i32, i32, i32, i32) -> i32
  return
}
