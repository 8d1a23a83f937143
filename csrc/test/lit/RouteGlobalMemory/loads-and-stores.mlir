// RUN: tdist-opt %s --tdist-route-global-memory | FileCheck %s

// What came as an argument may be seen by others; what the program has taken for itself is not.
// CHECK: llvm.func @tdist_sim_store(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
// CHECK: llvm.func @tdist_sim_load(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
// CHECK: llvm.mlir.constant(12 : i32)
// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: (%[[ARG:.*]]: !llvm.ptr, %{{.*}}: i64)
// CHECK: %[[STORED:.*]] = llvm.alloca %{{.*}} x f32
// CHECK: %[[LOADED:.*]] = llvm.alloca %{{.*}} x vector<4xf32>
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: llvm.call @tdist_sim_load(%[[ARG]], %[[LOADED]], %[[BYTES]], %{{.*}})
// CHECK: %[[VALUE:.*]] = llvm.load %[[LOADED]]
// CHECK: llvm.store %[[VALUE]], %{{.*}} : vector<4xf32>
// CHECK: %[[ONE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK: llvm.store %[[ONE]], %[[STORED]]
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i64)
// CHECK: llvm.call @tdist_sim_store(%{{.*}}, %[[STORED]], %[[FOUR]], %{{.*}})
// CHECK: llvm.return
llvm.func @tdist_sim_alloc(i64, i64) -> !llvm.ptr
llvm.func @kernel(%arg: !llvm.ptr, %index: i64) {
  %size = llvm.mlir.constant(64 : i64) : i64
  %own = llvm.call @tdist_sim_alloc(%size, %size) : (i64, i64) -> !llvm.ptr
  %undef = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64)>
  %first = llvm.insertvalue %own, %undef[0] : !llvm.struct<(ptr, ptr, i64)>
  %second = llvm.insertvalue %own, %first[1] : !llvm.struct<(ptr, ptr, i64)>
  %third = llvm.insertvalue %size, %second[2] : !llvm.struct<(ptr, ptr, i64)>
  %value = llvm.load %arg : !llvm.ptr -> vector<4xf32> loc("k.py":12:3)
  %base = llvm.extractvalue %third[1] : !llvm.struct<(ptr, ptr, i64)>
  %local = llvm.getelementptr %base[%index] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %value, %local : vector<4xf32>, !llvm.ptr
  %one = llvm.load %local : !llvm.ptr -> f32
  %element = llvm.getelementptr %arg[%index] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr loc("k.py":13:3)
  llvm.return
}
