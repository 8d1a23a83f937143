// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// The view itself is passed: the address in the IR has lost its offset. All stores are done before the signal is set.
// CHECK-LABEL: func.func @set
// CHECK-SAME: %[[SIGNAL:.*]]: memref<?xi64>, %[[SLOT:.*]]: index, %[[PE:.*]]: i32, %[[VALUE:.*]]: i64
// CHECK: %[[WORD:.*]] = memref.reinterpret_cast %[[SIGNAL]] to offset: [%[[SLOT]]]
// CHECK-NOT: extract_aligned_pointer
// CHECK: "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}>
// CHECK-NEXT: "hivm.hir.custom"(%[[WORD]], %[[VALUE]], %[[PE]])
// CHECK-SAME: <{name = "tdist.aclshmem_int64_p", operandSegmentSizes = array<i32: 3, 0, 0>}>
// CHECK-SAME: {hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>,
// CHECK-SAME: hivm.vf_mode = #hivm.vf_mode<SIMD>, symbol = "aclshmem_int64_p"}
// CHECK-SAME: : (memref<1xi64, strided<[1], offset: ?>>, i64, i32) -> ()
func.func @set(%signal: memref<?xi64>, %slot: index, %pe: i32, %value: i64) {
  %set = arith.constant 1 : i32
  %word = memref.reinterpret_cast %signal to offset: [%slot], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: ?>>
  %pointer = memref.extract_aligned_pointer_as_index %word : memref<1xi64, strided<[1], offset: ?>> -> index
  %address = arith.index_cast %pointer : index to i64
  %0 = "tt.extern_elementwise"(%address, %pe, %value, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  return
}

// A fixed offset is one too, and an argument without an offset is passed as it is.
// CHECK-LABEL: func.func @set_32_bits
// CHECK-SAME: %[[SIGNAL:.*]]: memref<?xi32>, %[[PE:.*]]: i32
// CHECK: %[[WORD:.*]] = memref.reinterpret_cast
// CHECK: "hivm.hir.custom"(%[[WORD]], %[[PE]], %[[PE]]){{.*}}symbol = "aclshmem_int32_p"
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK: "hivm.hir.custom"(%[[SIGNAL]], %[[PE]], %[[PE]]){{.*}}symbol = "aclshmem_int32_p"{{.*}}: (memref<?xi32>, i32, i32)
func.func @set_32_bits(%signal: memref<?xi32>, %pe: i32) {
  %set = arith.constant 1 : i32
  %word = memref.reinterpret_cast %signal to offset: [16], sizes: [1], strides: [1]
      : memref<?xi32> to memref<1xi32, strided<[1], offset: 16>>
  %pointer = memref.extract_aligned_pointer_as_index %word : memref<1xi32, strided<[1], offset: 16>> -> index
  %address = arith.index_cast %pointer : index to i64
  %0 = "tt.extern_elementwise"(%address, %pe, %pe, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i32"}> : (i64, i32, i32, i32, i32) -> i32
  %first = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %1 = arith.index_cast %first : index to i64
  %2 = "tt.extern_elementwise"(%1, %pe, %pe, %set, %set)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i32"}> : (i64, i32, i32, i32, i32) -> i32
  return
}

// The Triton dialect's number of `add` is 2, aclshmem's is 1.
// CHECK-LABEL: func.func @add_32_bits
// CHECK-SAME: %[[SIGNAL:.*]]: memref<?xi32>, %[[PE:.*]]: i32, %[[VALUE:.*]]: i32
// CHECK: %[[ADD:.*]] = arith.constant 1 : i32
// CHECK: "hivm.hir.custom"(%[[SIGNAL]], %[[VALUE]], %[[ADD]], %[[PE]])
// CHECK-SAME: symbol = "aclshmemx_signal_op"} : (memref<?xi32>, i32, i32, i32) -> ()
func.func @add_32_bits(%signal: memref<?xi32>, %pe: i32, %value: i32) {
  %add = arith.constant 2 : i32
  %pointer = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %address = arith.index_cast %pointer : index to i64
  %0 = "tt.extern_elementwise"(%address, %pe, %value, %add, %add)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i32"}> : (i64, i32, i32, i32, i32) -> i32
  return
}
