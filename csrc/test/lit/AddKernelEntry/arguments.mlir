// RUN: tdist-opt %s --tdist-add-kernel-entry | FileCheck %s

// The hidden arguments have no slot; numbers of programs come from %grid, ids from %pid.
// CHECK: func.func @kernel({{.*}}) attributes {{.*}}llvm.linkage = #llvm.linkage<internal>
// CHECK-LABEL: func.func @tdist_kernel_entry
// CHECK-SAME: (%[[ARGS:.*]]: !llvm.ptr, %[[GRID:.*]]: !llvm.ptr, %[[PID:.*]]: !llvm.ptr)
// CHECK: llvm.mlir.zero
// CHECK: llvm.mlir.zero
// CHECK: %[[SLOT0:.*]] = llvm.getelementptr %[[ARGS]][0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: llvm.load %[[SLOT0]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[SLOT1:.*]] = llvm.getelementptr %[[ARGS]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[N:.*]] = llvm.load %[[SLOT1]] : !llvm.ptr -> i32
// CHECK: llvm.getelementptr %[[GRID]][0]
// CHECK: llvm.getelementptr %[[GRID]][1]
// CHECK: llvm.getelementptr %[[GRID]][2]
// CHECK: llvm.getelementptr %[[PID]][0]
// CHECK: llvm.getelementptr %[[PID]][1]
// CHECK: llvm.getelementptr %[[PID]][2]
// CHECK: call @kernel(%{{.*}}, %{{.*}}, %{{.*}}, %[[N]]
func.func @kernel(%lock: memref<?xi8>, %workspace: memref<?xi8>, %x: memref<?xf32>, %n: i32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32)
    attributes {SyncBlockLockArgIdx = 0 : i64, WorkspaceArgIdx = 1 : i64} {
  return
}
