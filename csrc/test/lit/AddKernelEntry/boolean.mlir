// RUN: tdist-opt %s --tdist-add-kernel-entry | FileCheck %s

// A bool is a byte in its slot, and any value but 0 is true.
// CHECK-LABEL: func.func @tdist_kernel_entry
// CHECK: %[[BYTE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK: %[[FLAG:.*]] = arith.cmpi ne, %[[BYTE]], %{{.*}} : i8
// CHECK: call @kernel(%[[FLAG]]
func.func @kernel(%x: i1, %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  return
}
