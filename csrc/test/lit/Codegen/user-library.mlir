// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-to-sim -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tdist-codegen %t.mlir -o %t.o
// RUN: llvm-nm --undefined-only %t.o | FileCheck %s --check-prefix=SYMBOL

// The libraries to link with stay on the module, and the symbol is for them to define.
// CHECK: module attributes {tdist.extern_libs = ["/opt/libscale.so"]}
// SYMBOL: U scale
func.func @kernel(%out: memref<?xf32>, %x: f32,
                  %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32, %pz: i32) {
  %c0 = arith.constant 0 : index
  %0 = "tt.extern_elementwise"(%x)
      <{libname = "scale", libpath = "/opt/libscale.so", pure = true, symbol = "scale"}> : (f32) -> f32
  memref.store %0, %out[%c0] : memref<?xf32>
  return
}
