// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 2>&1 | FileCheck %s --check-prefix=A2
// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910_9392 2>&1 | FileCheck %s --check-prefix=A3

// A2: kernel.py:7:4: error: notify: sig_op is 'add' and the word has 64 bits; Ascend910B3 adds to words of other PEs in int32 only
// A3: kernel.py:7:4: error: notify: sig_op is 'add' and the word has 64 bits; Ascend910_9392 adds
func.func @kernel(%signal: memref<?xi64>, %pe: i32, %value: i64) {
  %add = arith.constant 2 : i32
  %pointer = memref.extract_aligned_pointer_as_index %signal : memref<?xi64> -> index
  %address = arith.index_cast %pointer : index to i64
  %0 = "tt.extern_elementwise"(%address, %pe, %value, %add, %add)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}>
      : (i64, i32, i64, i32, i32) -> i32 loc("kernel.py":7:4)
  return
}
