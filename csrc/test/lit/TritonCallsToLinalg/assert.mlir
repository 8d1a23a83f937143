// RUN: tdist-opt %s --tdist-convert-triton-calls-to-linalg --allow-unregistered-dialect | FileCheck %s

// The program ends with the text at the first condition that does not hold.
// CHECK: llvm.mlir.global internal constant @[[TEXT:.*]]("too big\00")
// CHECK-NOT: @triton_assert
// CHECK-LABEL: func.func @kernel
// CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @[[TEXT]]
// CHECK: scf.for
// CHECK: %[[HOLDS:.*]] = tensor.extract
// CHECK: %[[FAILS:.*]] = arith.xori %[[HOLDS]]
// CHECK: scf.if %[[FAILS]]
// CHECK: llvm.ptrtoint %[[ADDRESS]]
// CHECK: "tt.extern_elementwise"{{.*}} symbol = "tdist_assert_failed"
func.func private @triton_assert_0(tensor<16xi1>) attributes {msg = "too big"}
func.func @kernel(%v: tensor<16xi1>) {
  call @triton_assert_0(%v) : (tensor<16xi1>) -> ()
  return
}
