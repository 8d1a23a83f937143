// RUN: tdist-opt %s --allow-unregistered-dialect --tdist-convert-extern-to-hivm=soc=Ascend910B3 | FileCheck %s

// Other symbols keep their names. A pointer is passed as the view that it points to; nobody wants the result of a
// function that returns nothing.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: %[[DATA:.*]]: memref<?xf32>, %[[X:.*]]: f32
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast
// CHECK: "hivm.hir.pipe_barrier"()
// CHECK-NEXT: "hivm.hir.custom"(%[[ROW]], %[[X]]) <{name = "tdist.my_store"
// CHECK-NOT: no_side_effect
// CHECK-SAME: libname = "mylib", libpath = "/opt/my.bc", symbol = "my_store"}
// CHECK-SAME: : (memref<1xf32, strided<[1], offset: 8>>, f32) -> ()
// CHECK: %[[Y:.*]] = "hivm.hir.custom"(%[[X]]) {{.*}}no_side_effect, symbol = "my_scale"} : (f32) -> f32
// CHECK: return %[[Y]]
func.func @kernel(%data: memref<?xf32>, %x: f32) -> f32 {
  %row = memref.reinterpret_cast %data to offset: [8], sizes: [1], strides: [1]
      : memref<?xf32> to memref<1xf32, strided<[1], offset: 8>>
  %p = memref.extract_aligned_pointer_as_index %row : memref<1xf32, strided<[1], offset: 8>> -> index
  %a = arith.index_cast %p : index to i64
  %0 = "tt.extern_elementwise"(%a, %x)
      <{libname = "mylib", libpath = "/opt/my.bc", pure = false, symbol = "my_store"}> : (i64, f32) -> i32
  %1 = "tt.extern_elementwise"(%x)
      <{libname = "", libpath = "", pure = true, symbol = "my_scale"}> : (f32) -> f32
  return %1 : f32
}
