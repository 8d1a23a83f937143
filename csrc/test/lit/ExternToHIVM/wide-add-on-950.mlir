// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend950PR_9589 | FileCheck %s

// CHECK: "hivm.hir.custom"({{.*}}symbol = "aclshmem_int64_atomic_add"} : (memref<?xi64>, i64, i32) -> ()
func.func @kernel(%signal: memref<?xi64>, %pe: i32, %value: i64) {
  %add = arith.constant 2 : i32
  %p = memref.extract_aligned_pointer_as_index %signal : memref<?xi64> -> index
  %a = arith.index_cast %p : index to i64
  %0 = "tt.extern_elementwise"(%a, %pe, %value, %add, %add)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  return
}
