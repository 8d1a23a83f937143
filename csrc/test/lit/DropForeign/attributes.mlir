// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-drop-foreign | FileCheck %s

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%{{.*}}: memref<?xf32>, %{{.*}}: i1) attributes {WorkspaceArgIdx = 1 : i64}
// CHECK-NOT: hivm
func.func @kernel(%out: memref<?xf32> {tt.tensor_kind = 1 : i32}, %full: i1)
    attributes {WorkspaceArgIdx = 1 : i64, hivm.module_core_type = "aiv"} {
  scf.if %full {
  } {hivm.unlikely_condition}
  return
}
