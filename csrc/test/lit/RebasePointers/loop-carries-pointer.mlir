// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-rebase-pointers --canonicalize | FileCheck %s

// A loop that moves a pointer made by symm_at carries the rest of its offset, over a condition too.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: %[[DATA:[a-z0-9]+]]: memref<?xi32>, %[[PE:[a-z0-9]+]]: i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[THERE:.*]] = "hivm.hir.custom"(%[[DATA]], %[[PE]]){{.*}}symbol = "aclshmem_ptr_int32"
// CHECK: scf.for {{.*}} iter_args(%[[OFFSET:.*]] = %[[ZERO]]) -> (index)
// CHECK: memref.reinterpret_cast %[[THERE]] to offset: [%[[OFFSET]]]
func.func @moved(%data: memref<?xi32>, %pe: i32, %n: index, %step: index, %more: i1) {
  %bytes = arith.constant 4 : i32
  %pointer = memref.extract_aligned_pointer_as_index %data : memref<?xi32> -> index
  %address = arith.index_cast %pointer : index to i64
  %delta = "tt.extern_elementwise"(%address, %pe, %bytes)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
  %distance = arith.index_cast %delta : i64 to index
  %end = scf.for %i = %step to %n step %step iter_args(%offset = %distance) -> (index) {
    %view = memref.reinterpret_cast %data to offset: [%offset], sizes: [32], strides: [1]
        : memref<?xi32> to memref<32xi32, strided<[1], offset: ?>>
    "test.use"(%view) : (memref<32xi32, strided<[1], offset: ?>>) -> ()
    %next = scf.if %more -> (index) {
      %moved = arith.addi %offset, %step : index
      scf.yield %moved : index
    } else {
      scf.yield %offset : index
    }
    scf.yield %next : index
  }
  return
}

// A loop that goes on with another PE's memory carries the distance itself: no view has one buffer.
// CHECK-LABEL: func.func @changed
// CHECK-SAME: %[[DATA:[a-z0-9]+]]: memref<?xi32>
// CHECK: scf.for {{.*}} iter_args(%[[OFFSET:.*]] = %{{.*}}) -> (index)
// CHECK: memref.reinterpret_cast %[[DATA]] to offset: [%[[OFFSET]]]
// CHECK: %[[THERE:.*]] = "hivm.hir.custom"(%[[DATA]], %{{.*}}){{.*}}symbol = "aclshmem_ptr_int32"
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[THERE]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[DATA]]
// CHECK: arith.subi
// CHECK: arith.divsi
func.func @changed(%data: memref<?xi32>, %pe: i32, %n: index, %step: index) {
  %bytes = arith.constant 4 : i32
  %pointer = memref.extract_aligned_pointer_as_index %data : memref<?xi32> -> index
  %address = arith.index_cast %pointer : index to i64
  %none = arith.constant 0 : index
  %end = scf.for %i = %step to %n step %step iter_args(%offset = %none) -> (index) {
    %view = memref.reinterpret_cast %data to offset: [%offset], sizes: [32], strides: [1]
        : memref<?xi32> to memref<32xi32, strided<[1], offset: ?>>
    "test.use"(%view) : (memref<32xi32, strided<[1], offset: ?>>) -> ()
    %delta = "tt.extern_elementwise"(%address, %pe, %bytes)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
    %distance = arith.index_cast %delta : i64 to index
    scf.yield %distance : index
  }
  return
}
