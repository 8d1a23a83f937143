// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-check-signal-order 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: kernel.py:3:1: error: 'aclshmem_int64_p' may be seen before the data: an earlier store on PIPE_MTE3 is not complete
// CHECK: kernel.py:2:1: note: this one
// CHECK: loop.py:3:1: error: 'aclshmem_int64_p' may be seen
// CHECK: loop.py:4:1: note: this one
// CHECK: flags.py:9:1: error: 'aclshmem_quiet' may be seen before the data: an earlier store on PIPE_FIX
!gm = memref<?xi64, #hivm.address_space<gm>>
func.func private @store_ubuf_to_gm_1d_int64_t(!gm)
func.func private @fixpipe_nz2nd(!gm)
func.func private @load_gm_to_ubuf_1d_int64_t(!gm)
func.func private @aclshmem_int64_p(!gm)
func.func private @aclshmem_quiet()
func.func private @aclshmem_wait_int64(!gm)

func.func @unfinished(%data: !gm, %signal: !gm) {
  func.call @load_gm_to_ubuf_1d_int64_t(%data) : (!gm) -> () loc("kernel.py":1:1)
  func.call @aclshmem_wait_int64(%signal) : (!gm) -> ()
  func.call @store_ubuf_to_gm_1d_int64_t(%data) : (!gm) -> () loc("kernel.py":2:1)
  "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_MTE3>}> : () -> ()
  func.call @aclshmem_wait_int64(%signal) : (!gm) -> ()
  func.call @aclshmem_int64_p(%signal) : (!gm) -> () loc("kernel.py":3:1)
  "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
  func.call @aclshmem_int64_p(%signal) : (!gm) -> () loc("kernel.py":4:1)
  return
}

// The store is that of the iteration before.
func.func @in_a_loop(%data: !gm, %signal: !gm, %n: index) {
  "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
  scf.for %i = %n to %n step %n {
    func.call @aclshmem_int64_p(%signal) : (!gm) -> () loc("loop.py":3:1)
    func.call @store_ubuf_to_gm_1d_int64_t(%data) : (!gm) -> () loc("loop.py":4:1)
  }
  return
}

// A flag that the scalar unit waits for does too, when it was raised behind the store.
func.func @flags(%data: !gm, %signal: !gm) {
  func.call @store_ubuf_to_gm_1d_int64_t(%data) : (!gm) -> ()
  "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE3>, static_event_id = #hivm.event<EVENT_ID0>, wait_pipe = #hivm.pipe<PIPE_S>}> : () -> ()
  "hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE3>, static_event_id = #hivm.event<EVENT_ID0>, wait_pipe = #hivm.pipe<PIPE_S>}> : () -> ()
  func.call @aclshmem_int64_p(%signal) : (!gm) -> () loc("flags.py":4:1)
  "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_FIX>, static_event_id = #hivm.event<EVENT_ID1>, wait_pipe = #hivm.pipe<PIPE_S>}> : () -> ()
  func.call @fixpipe_nz2nd(%data) : (!gm) -> ()
  "hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_FIX>, static_event_id = #hivm.event<EVENT_ID1>, wait_pipe = #hivm.pipe<PIPE_S>}> : () -> ()
  func.call @aclshmem_quiet() : () -> () loc("flags.py":9:1)
  return
}
