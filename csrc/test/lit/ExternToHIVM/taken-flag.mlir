// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-lower-to-hivm=soc=Ascend910B3 2>&1 | FileCheck %s

// CHECK: kernel.py:6:1: error: event_id is 9, which kernels with tl.dot and distributed operations use themselves
func.func @kernel(%zero: i32) attributes {mix_mode = "mix"} {
  "hivm.hir.sync_block_wait"() <{pipe = #hivm.pipe<PIPE_S>, static_flag_id = 9 : i64, tcore_type = #hivm.tcore_type<CUBE>, tpipe = #hivm.pipe<PIPE_MTE3>}> : () -> () loc("kernel.py":6:1)
  %0 = "tt.extern_elementwise"(%zero)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_quiet"}> : (i32) -> i32
  return
}
