// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers --canonicalize | FileCheck %s

// consume_token of a number: a 0 that only the device library knows, so that no compiler folds the dependency away.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[NUMBER:.*]]: i64, %[[TOKEN:.*]]: i32
// CHECK: %[[ZERO:.*]] = "hivm.hir.custom"(%c0_i64, %[[TOKEN]])
// CHECK-SAME: symbol = "aclshmem_consume_token_int64"} : (i64, i32) -> i64
// CHECK: arith.addi %[[NUMBER]], %[[ZERO]]
func.func @kernel(%number: i64, %token: i32) -> i64 {
  %zero = "tt.extern_elementwise"(%token)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
  %consumed = arith.addi %number, %zero : i64
  "test.use"(%consumed) : (i64) -> ()
  return %consumed : i64
}
