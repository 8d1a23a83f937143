// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910_9392 | FileCheck %s

// CHECK-LABEL: func.func @queries
// CHECK-SAME: %[[TEAM:.*]]: i32
// CHECK: "hivm.hir.custom"() {{.*}}no_side_effect, symbol = "aclshmem_my_pe"} : () -> i32
// CHECK: "hivm.hir.custom"() {{.*}}no_side_effect, symbol = "aclshmem_n_pes"} : () -> i32
// CHECK: "hivm.hir.custom"(%[[TEAM]]) {{.*}}no_side_effect, symbol = "aclshmem_team_my_pe"} : (i32) -> i32
// CHECK: "hivm.hir.custom"(%[[TEAM]]) {{.*}}no_side_effect, symbol = "aclshmem_team_n_pes"} : (i32) -> i32
// A vector kernel has one core a program.
// CHECK: arith.constant 0 : i32
// CHECK: arith.constant 1 : i32
// CHECK-NOT: tt.extern_elementwise
func.func @queries(%team: i32) -> (i32, i32, i32, i32, i32, i32) {
  %0 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_my_pe"}> : (i32) -> i32
  %1 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_n_pes"}> : (i32) -> i32
  %2 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_team_my_pe"}> : (i32) -> i32
  %3 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_team_n_pes"}> : (i32) -> i32
  %4 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = true, symbol = "tdist_sub_vec_id"}> : (i32) -> i32
  %5 = "tt.extern_elementwise"(%team)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_sub_vec_num"}> : (i32) -> i32
  return %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
}

// What others find after a barrier or a quiet is complete: the stores of this core first.
// CHECK-LABEL: func.func @barriers
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: "hivm.hir.custom"() {{.*}}hivm.tcore_type = #hivm.tcore_type<VECTOR>{{.*}}symbol = "aclshmem_barrier_all"} : () -> ()
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: symbol = "aclshmemx_barrier_all_vec"
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: symbol = "aclshmem_quiet"
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: symbol = "aclshmem_fence"
func.func @barriers(%unused: i32) {
  %0 = "tt.extern_elementwise"(%unused)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all"}> : (i32) -> i32
  %1 = "tt.extern_elementwise"(%unused)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_barrier_all_vec"}> : (i32) -> i32
  %2 = "tt.extern_elementwise"(%unused)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_quiet"}> : (i32) -> i32
  %3 = "tt.extern_elementwise"(%unused)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_fence"}> : (i32) -> i32
  return
}
