// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: tdist-codegen %t.mlir --opt-level=3 --emit-llvm %t.3.ll
// RUN: FileCheck %s < %t.3.ll

// Each store goes to the same word and only the last would be seen without the notify: every one of
// them must be done before its notify, inside the loop.
// CHECK-LABEL: define {{.*}}void @tdist_kernel_entry
// CHECK: [[LOOP:[.a-z0-9_]+]]:
// CHECK: store i32
// CHECK: call i32 @tdist_sim_notify_i32
// CHECK: br i1 {{.*}}label %[[LOOP]]
// CHECK: ret void
func.func @kernel(%data: memref<?xi32>, %signal: memref<?xi32>, %n: i32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = arith.constant 0 : index
  %signal_index = memref.extract_aligned_pointer_as_index %signal : memref<?xi32> -> index
  %address = arith.index_cast %signal_index : index to i64
  scf.for %i = %c0 to %n step %c1 : i32 {
    memref.store %i, %data[%first] : memref<?xi32>
    %done = "tt.extern_elementwise"(%address, %c0, %i, %c1, %c1)
        <{libname = "tdist", libpath = "", pure = false, symbol = "tdist_notify_i32"}> : (i64, i32, i32, i32, i32) -> i32
  }
  return
}
