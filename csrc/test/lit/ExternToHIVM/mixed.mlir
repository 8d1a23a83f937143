// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// The first vector core signals for its program, once the cube core and both vector cores have stored: the vector cores
// tell the cube core, which tells them when it has got there too.
// CHECK-LABEL: func.func @once
// CHECK: "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}>
// CHECK-NEXT: "hivm.hir.sync_block_set"() <{{.*}}static_flag_id = [[VECTORS:[0-9]+]] : i64, tcore_type = #hivm.tcore_type<VECTOR>, tpipe = #hivm.pipe<PIPE_MTE3>
// CHECK-NEXT: "hivm.hir.sync_block_wait"() <{{.*}}static_flag_id = [[VECTORS]] : i64, tcore_type = #hivm.tcore_type<CUBE>
// CHECK-NEXT: "hivm.hir.sync_block_set"() <{{.*}}static_flag_id = [[ALL:[0-9]+]] : i64, tcore_type = #hivm.tcore_type<CUBE>, tpipe = #hivm.pipe<PIPE_FIX>
// CHECK-NEXT: "hivm.hir.sync_block_wait"() <{{.*}}static_flag_id = [[ALL]] : i64, tcore_type = #hivm.tcore_type<VECTOR>
// CHECK-NEXT: %[[CORE:.*]] = "hivm.hir.get_sub_block_idx"() : () -> i64
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi eq, %[[CORE]], %[[ZERO]]
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: hivm.tcore_type = #hivm.tcore_type<VECTOR>{{.*}}symbol = "aclshmem_int64_p"
// CHECK-NEXT: {{^ *}$}}
// All cores wait, and all of them know their rank.
// CHECK: hivm.tcore_type = #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}symbol = "aclshmem_wait_int64"
// CHECK: hivm.tcore_type = #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}symbol = "aclshmem_my_pe"
// CHECK: hivm.tcore_type = #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}symbol = "aclshmem_barrier_all"
// CHECK: hivm.tcore_type = #hivm.tcore_type<VECTOR>{{.*}}symbol = "aclshmemx_barrier_all_vec"
// CHECK-NEXT: sync_block_set
func.func @once(%signal: memref<?xi64>, %pe: i32, %value: i64) attributes {mix_mode = "mix"} {
  %set = arith.constant 1 : i32
  %p = memref.extract_aligned_pointer_as_index %signal : memref<?xi64> -> index
  %a = arith.index_cast %p : index to i64
  %0 = "tt.extern_elementwise"(%a, %pe, %value, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %1 = "tt.extern_elementwise"(%a, %pe, %value, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %2 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_my_pe"}> : (i32) -> i32
  %3 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all"}> : (i32) -> i32
  %4 = "tt.extern_elementwise"(%pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all_vec"}> : (i32) -> i32
  return
}

// What depends on sub_vec_id is done by each core for itself, and all cores meet where all of them come.
// CHECK-LABEL: func.func @by_each
// CHECK: %[[INDEX:.*]] = "hivm.hir.get_sub_block_idx"() : () -> i64
// CHECK: %[[CORE:.*]] = arith.trunci %[[INDEX]] : i64 to i32
// CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[CORE]]
// CHECK-NEXT: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: sync_block_set
// CHECK-COUNT-2: sync_block_wait
// CHECK-NEXT: scf.if %[[SECOND]] {
// CHECK-NEXT: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: symbol = "aclshmem_int64_p"
// CHECK-NEXT: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: symbol = "aclshmem_int64_p"
// CHECK-NEXT: {{^ *}$}}
// CHECK-NEXT: return
func.func @by_each(%signal: memref<?xi64>, %pe: i32, %value: i64) attributes {mix_mode = "mix"} {
  %set = arith.constant 1 : i32
  %core = "tt.extern_elementwise"(%set)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  %second = arith.cmpi eq, %core, %set : i32
  %p = memref.extract_aligned_pointer_as_index %signal : memref<?xi64> -> index
  %a = arith.index_cast %p : index to i64
  scf.if %second {
    %0 = "tt.extern_elementwise"(%a, %pe, %value, %set, %set)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
    %1 = "tt.extern_elementwise"(%a, %pe, %value, %set, %set)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  }
  return
}
