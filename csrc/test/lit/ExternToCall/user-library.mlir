// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-call | FileCheck %s

// The C function is called as it is; small integers are extended as C wants them.
// CHECK: module attributes {tdist.extern_libs = ["/opt/a.so", "/opt/b.so"]}
// CHECK-DAG: func.func private @scale(f32, i8 {llvm.signext}, i1 {llvm.zeroext}) -> f32 attributes {tdist.extern}
// CHECK-DAG: func.func private @other(i32) -> i32
// CHECK-LABEL: func.func @kernel
// CHECK: call @scale(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, i8, i1) -> f32
func.func @kernel(%x: f32, %n: i8, %flag: i1, %i: i32) -> f32 {
  %0 = "tt.extern_elementwise"(%x, %n, %flag)
      <{libname = "a", libpath = "/opt/a.so", pure = true, symbol = "scale"}> : (f32, i8, i1) -> f32
  %1 = "tt.extern_elementwise"(%i)
      <{libname = "b", libpath = "/opt/b.so", pure = false, symbol = "other"}> : (i32) -> i32
  return %0 : f32
}
