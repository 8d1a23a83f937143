// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// What makes an address is erased with the call, once, also where the call is given it twice.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[AT:[a-z0-9]+]]: memref<?xi32>
// CHECK-NOT: memref.extract_aligned_pointer_as_index
// CHECK: "hivm.hir.custom"(%[[AT]], %[[AT]],
// CHECK-SAME: symbol = "aclshmem_int32_putmem"
func.func @kernel(%at: memref<?xi32>, %bytes: i32, %pe: i32) {
  %p = memref.extract_aligned_pointer_as_index %at : memref<?xi32> -> index
  %a = arith.index_cast %p : index to i64
  %0 = "tt.extern_elementwise"(%a, %a, %bytes, %pe)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_putmem"}> : (i64, i64, i32, i32) -> i32
  return
}
