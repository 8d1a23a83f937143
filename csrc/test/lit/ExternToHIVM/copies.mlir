// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// A copy uses pipes that the compiler does not see: barriers before and after it.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[TO:[a-z0-9]+]]: memref<?xbf16>, %[[FROM:[a-z0-9]+]]: memref<?xbf16>, %[[SIGNAL:[a-z0-9]+]]: memref<?xi32>, %[[BYTES:[a-z0-9]+]]: i32, %[[PE:[a-z0-9]+]]: i32
// CHECK: %[[SET:.*]] = arith.constant 0 : i32
// CHECK: "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}>
// CHECK-NEXT: "hivm.hir.custom"(%[[TO]], %[[FROM]], %[[BYTES]], %[[PE]]){{.*}}hivm.tcore_type = #hivm.tcore_type<VECTOR>
// CHECK-SAME: symbol = "aclshmem_bfloat16_putmem"} : (memref<?xbf16>, memref<?xbf16>, i32, i32) -> ()
// CHECK-NEXT: "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}>
// CHECK: symbol = "aclshmem_bfloat16_putmem_nbi"
// CHECK: symbol = "aclshmem_bfloat16_getmem"
// CHECK: symbol = "aclshmem_bfloat16_getmem_nbi"
// CHECK: "hivm.hir.custom"(%[[TO]], %[[FROM]], %[[BYTES]], %[[SIGNAL]], %[[BYTES]], %[[SET]], %[[PE]])
// CHECK-SAME: symbol = "aclshmem_bfloat16_putmem_signal"}
// CHECK-SAME: (memref<?xbf16>, memref<?xbf16>, i32, memref<?xi32>, i32, i32, i32) -> ()
// CHECK: symbol = "aclshmem_bfloat16_putmem_signal_nbi"
func.func @kernel(%to: memref<?xbf16>, %from: memref<?xbf16>, %signal: memref<?xi32>, %bytes: i32, %pe: i32) {
  %set = arith.constant 0 : i32
  %p0 = memref.extract_aligned_pointer_as_index %to : memref<?xbf16> -> index
  %a = arith.index_cast %p0 : index to i64
  %p1 = memref.extract_aligned_pointer_as_index %from : memref<?xbf16> -> index
  %b = arith.index_cast %p1 : index to i64
  %p2 = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %s = arith.index_cast %p2 : index to i64
  %0 = "tt.extern_elementwise"(%a, %b, %bytes, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_putmem"}> : (i64, i64, i32, i32) -> i32
  %1 = "tt.extern_elementwise"(%a, %b, %bytes, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_putmem_nbi"}> : (i64, i64, i32, i32) -> i32
  %2 = "tt.extern_elementwise"(%a, %b, %bytes, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_getmem"}> : (i64, i64, i32, i32) -> i32
  %3 = "tt.extern_elementwise"(%a, %b, %bytes, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_getmem_nbi"}> : (i64, i64, i32, i32) -> i32
  %4 = "tt.extern_elementwise"(%a, %b, %bytes, %s, %bytes, %set, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_putmem_signal"}>
      : (i64, i64, i32, i64, i32, i32, i32) -> i32
  %5 = "tt.extern_elementwise"(%a, %b, %bytes, %s, %bytes, %set, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_putmem_signal_nbi"}>
      : (i64, i64, i32, i64, i32, i32, i32) -> i32
  return
}
