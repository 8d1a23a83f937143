// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// The number of words is 64 bits wide. A wait has an effect, used or not.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[WIDE:.*]]: memref<?xi64>, %[[NARROW:.*]]: memref<?xi32>, %[[COUNT:.*]]: i32, %[[VALUE:.*]]: i64
// CHECK: %[[WORDS:.*]] = arith.extsi %[[COUNT]] : i32 to i64
// CHECK: %[[TOKEN:.*]] = "hivm.hir.custom"(%[[WIDE]], %[[WORDS]], %[[VALUE]])
// CHECK-NOT: no_side_effect
// CHECK-SAME: symbol = "aclshmem_wait_int64"} : (memref<?xi64>, i64, i64) -> i32
// CHECK: "hivm.hir.custom"(%[[NARROW]], %{{.*}}, %[[COUNT]])
// CHECK-NOT: no_side_effect
// CHECK-SAME: symbol = "aclshmem_wait_int32"} : (memref<?xi32>, i64, i32) -> i32
// CHECK: return %[[TOKEN]]
func.func @kernel(%wide: memref<?xi64>, %narrow: memref<?xi32>, %count: i32, %value: i64) -> i32 {
  %scope = arith.constant 0 : i32
  %pointer = memref.extract_aligned_pointer_as_index %wide : memref<?xi64> -> index
  %address = arith.index_cast %pointer : index to i64
  %token = "tt.extern_elementwise"(%address, %count, %value, %scope, %scope)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %second = memref.extract_aligned_pointer_as_index %narrow : memref<?xi32> -> index
  %1 = arith.index_cast %second : index to i64
  %2 = "tt.extern_elementwise"(%1, %count, %count, %scope, %scope)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i32"}> : (i64, i32, i32, i32, i32) -> i32
  return %token : i32
}
