// RUN: not tdist-opt %s --tdist-add-kernel-entry 2>&1 | FileCheck %s

// CHECK: error: 'func.func' op is not a kernel of triton-ascend's adapter: {{.*}}'(f32) -> ()'
func.func @kernel(%x: f32) {
  return
}
