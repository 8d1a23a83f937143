// RUN: not tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers 2>&1 | FileCheck %s

// CHECK: kernel.py:4:2: error: symm_at: aclshmem has no pointers of type 'memref<?xf64>'
func.func @kernel(%data: memref<?xf64>, %pe: i32) -> memref<1xf64, strided<[1], offset: ?>> {
  %bytes = arith.constant 8 : i32
  %pointer = memref.extract_aligned_pointer_as_index %data : memref<?xf64> -> index
  %address = arith.index_cast %pointer : index to i64
  %delta = "tt.extern_elementwise"(%address, %pe, %bytes)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
      loc("kernel.py":4:2)
  %distance = arith.index_cast %delta : i64 to index
  %view = memref.reinterpret_cast %data to offset: [%distance], sizes: [1], strides: [1]
      : memref<?xf64> to memref<1xf64, strided<[1], offset: ?>>
  return %view : memref<1xf64, strided<[1], offset: ?>>
}
