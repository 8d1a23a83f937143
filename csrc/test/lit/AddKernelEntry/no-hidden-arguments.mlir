// RUN: tdist-opt %s --tdist-add-kernel-entry | FileCheck %s

// CHECK-LABEL: func.func @tdist_kernel_entry
// CHECK-NOT: llvm.mlir.zero
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %{{.*}}[0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[X:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> f32
// CHECK: call @kernel(%[[X]]
func.func @kernel(%x: f32, %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  return
}
