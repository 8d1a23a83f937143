// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --opt-level=0 --emit-llvm %t.0.ll
// RUN: FileCheck %s --check-prefixes=CHECK,O0 < %t.0.ll
// RUN: tdist-codegen %t.mlir --opt-level=3 --emit-llvm %t.3.ll
// RUN: FileCheck %s < %t.3.ll

// The word is loaded before the notify, after it and after the wait: three loads at every level, as
// another rank may write in between; and the store before the notify stays before.
// O0-LABEL: define internal void @kernel
// CHECK: call i64 @tdist_sim_delta
// CHECK: load i64, ptr
// CHECK: store i64 7, ptr
// CHECK: call i32 @tdist_sim_notify_i64
// CHECK: load i64, ptr
// CHECK: call i32 @tdist_sim_wait_i64
// CHECK: load i64, ptr
// CHECK: store i64
// CHECK: ret void
func.func @kernel(%data: memref<?xi64>, %signal: memref<?xi64>, %out: memref<?xi64>, %pe: i32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %value = arith.constant 7 : i64
  %data_index = memref.extract_aligned_pointer_as_index %data : memref<?xi64> -> index
  %data_address = arith.index_cast %data_index : index to i64
  %signal_index = memref.extract_aligned_pointer_as_index %signal : memref<?xi64> -> index
  %signal_address = arith.index_cast %signal_index : index to i64
  %delta = "tt.extern_elementwise"(%data_address, %pe, %c8)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_delta"}> : (i64, i32, i32) -> i64
  %offset = arith.index_cast %delta : i64 to index
  %remote = memref.reinterpret_cast %data to offset: [%offset], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: ?>>
  %local = memref.reinterpret_cast %data to offset: [0], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1]>>
  %first = memref.load %local[%c0] : memref<1xi64, strided<[1]>>
  memref.store %value, %remote[%c0] : memref<1xi64, strided<[1], offset: ?>>
  %0 = "tt.extern_elementwise"(%signal_address, %pe, %value, %c1, %c1)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %second = memref.load %local[%c0] : memref<1xi64, strided<[1]>>
  %token = "tt.extern_elementwise"(%signal_address, %c1, %value, %c1, %c1)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_wait_i64"}> : (i64, i32, i64, i32, i32) -> i32
  %zero = "tt.extern_elementwise"(%token)
      <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_zero"}> : (i32) -> i64
  %zero_index = arith.index_cast %zero : i64 to index
  %ready = memref.reinterpret_cast %data to offset: [%zero_index], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1], offset: ?>>
  %third = memref.load %ready[%c0] : memref<1xi64, strided<[1], offset: ?>>
  %some = arith.addi %first, %second : i64
  %all = arith.addi %some, %third : i64
  %result = memref.reinterpret_cast %out to offset: [0], sizes: [1], strides: [1]
      : memref<?xi64> to memref<1xi64, strided<[1]>>
  memref.store %all, %result[%c0] : memref<1xi64, strided<[1]>>
  return
}
