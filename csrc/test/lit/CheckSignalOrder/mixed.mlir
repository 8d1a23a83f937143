// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-check-signal-order
// RUN: sed 's/= 9 : i64, tcore_type = #hivm.tcore_type<CUBE>/= 8 : i64, tcore_type = #hivm.tcore_type<CUBE>/' %s | not tdist-opt --allow-unregistered-dialect --tdist-check-signal-order 2>&1 | FileCheck %s
// RUN: sed '/PIPE_ALL/d' %s | not tdist-opt --allow-unregistered-dialect --tdist-check-signal-order 2>&1 | FileCheck %s

// The cube core says that it is there when it has waited for the vector cores (9) and its own stores are complete (10).
// CHECK: kernel.py:5:1: error: 'aclshmem_int64_p' may be seen before the data: the stores of the program's other cores, the cube core and the second vector core, are not waited for
!gm = memref<?xi64, #hivm.address_space<gm>>
func.func private @store_ubuf_to_gm_1d_int64_t.vector(!gm)
func.func private @store_workspace.cube(!gm)
func.func private @aclshmem_int64_p.vector(!gm)

func.func @kernel_mix_aic(%data: !gm) {
  func.call @store_workspace.cube(%data) : (!gm) -> ()
  "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
  "hivm.hir.sync_block_wait"() <{pipe = #hivm.pipe<PIPE_S>, static_flag_id = 9 : i64, tcore_type = #hivm.tcore_type<CUBE>, tpipe = #hivm.pipe<PIPE_MTE3>}> : () -> ()
  "hivm.hir.sync_block_set"() <{pipe = #hivm.pipe<PIPE_S>, static_flag_id = 10 : i64, tcore_type = #hivm.tcore_type<CUBE>, tpipe = #hivm.pipe<PIPE_FIX>}> : () -> ()
  return
}

func.func @kernel_mix_aiv(%data: !gm, %signal: !gm) {
  %zero = arith.constant 0 : i64
  func.call @store_ubuf_to_gm_1d_int64_t.vector(%data) : (!gm) -> ()
  "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
  "hivm.hir.sync_block_set"() <{pipe = #hivm.pipe<PIPE_S>, static_flag_id = 9 : i64, tcore_type = #hivm.tcore_type<VECTOR>, tpipe = #hivm.pipe<PIPE_MTE3>}> : () -> ()
  "hivm.hir.sync_block_wait"() <{pipe = #hivm.pipe<PIPE_S>, static_flag_id = 10 : i64, tcore_type = #hivm.tcore_type<VECTOR>, tpipe = #hivm.pipe<PIPE_FIX>}> : () -> ()
  %core = "hivm.hir.get_sub_block_idx"() : () -> i64
  %first = arith.cmpi eq, %core, %zero : i64
  scf.if %first {
    // A store of the one core that signals needs no other core, but its own barrier.
    func.call @store_ubuf_to_gm_1d_int64_t.vector(%data) : (!gm) -> ()
    "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
    func.call @aclshmem_int64_p.vector(%signal) : (!gm) -> () loc("kernel.py":5:1)
  }
  return
}
