// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg | FileCheck %s

// A line for each element, with the program's place in the grid; a percent sign is only text.
// CHECK-DAG: llvm.func @dprintf(i32, !llvm.ptr, ...) -> i32
// CHECK-DAG: "pid (%d, %d, %d) idx (%lld) v 100%%: %f\0A\00"
// CHECK-DAG: "pid (%d, %d, %d) n: 0x%llx\0A\00"
// CHECK-NOT: @triton_print
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[X:[a-z0-9]+]]: i32, %[[Y:[a-z0-9]+]]: i32, %[[Z:[a-z0-9]+]]: i32)
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[HALF:.*]] = tensor.extract
// CHECK: %[[AT:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[VALUE:.*]] = arith.extf %[[HALF]] : f16 to f64
// CHECK: llvm.call @dprintf(%{{.*}}, %{{.*}}, %[[X]], %[[Y]], %[[Z]], %[[AT]], %[[VALUE]])
// CHECK: %[[N:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: llvm.call @dprintf(%{{.*}}, %{{.*}}, %[[X]], %[[Y]], %[[Z]], %[[N]])
func.func private @triton_print_0(tensor<16xf16>) attributes {hex = false, prefix = " v 100%: "}
func.func private @triton_print_1(i32) attributes {hex = true, prefix = " n: "}
func.func @kernel(%v: tensor<16xf16>, %n: i32, %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  call @triton_print_0(%v) : (tensor<16xf16>) -> ()
  call @triton_print_1(%n) : (i32) -> ()
  return
}
