// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers --canonicalize | FileCheck %s

// The view lies in what aclshmem_ptr returns for its buffer; its offset is what was there beside the distance.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[DATA:.*]]: memref<?xf16>, %[[PE:.*]]: i32, %[[ROW:[a-z0-9]+]]: index
// CHECK: %[[THERE:.*]] = "hivm.hir.custom"(%[[DATA]], %[[PE]])
// CHECK-SAME: <{name = "tdist.aclshmem_ptr_half", operandSegmentSizes = array<i32: 2, 0, 0>}>
// CHECK-SAME: {hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>,
// CHECK-SAME: hivm.vf_mode = #hivm.vf_mode<SIMD>, no_side_effect, symbol = "aclshmem_ptr_half"}
// CHECK-SAME: : (memref<?xf16>, i32) -> memref<?xf16>
// CHECK: memref.reinterpret_cast %[[THERE]] to offset: [%[[ROW]]]
// CHECK-NOT: extract_aligned_pointer
func.func @kernel(%data: memref<?xf16>, %pe: i32, %row: index) -> memref<32xf16, strided<[1], offset: ?>> {
  %bytes = arith.constant 2 : i32
  %from = memref.reinterpret_cast %data to offset: [%row], sizes: [1], strides: [1]
      : memref<?xf16> to memref<1xf16, strided<[1], offset: ?>>
  %pointer = memref.extract_aligned_pointer_as_index %from : memref<1xf16, strided<[1], offset: ?>> -> index
  %address = arith.index_cast %pointer : index to i64
  %delta = "tt.extern_elementwise"(%address, %pe, %bytes)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
  %distance = arith.index_cast %delta : i64 to index
  %offset = arith.addi %row, %distance : index
  %view = memref.reinterpret_cast %data to offset: [%offset], sizes: [32], strides: [1]
      : memref<?xf16> to memref<32xf16, strided<[1], offset: ?>>
  return %view : memref<32xf16, strided<[1], offset: ?>>
}
