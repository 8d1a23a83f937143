// RUN: tdist-opt %s --tdist-route-global-memory | FileCheck %s

// Atomic operations come after what the program has stored before, and stay as they are.
// CHECK-LABEL: llvm.func @kernel
// CHECK: llvm.call @tdist_sim_release
// CHECK-NEXT: llvm.atomicrmw add
// CHECK: llvm.call @tdist_sim_release
// CHECK-NEXT: llvm.cmpxchg
// CHECK: llvm.call @tdist_sim_release
// CHECK-NEXT: llvm.load %{{.*}} atomic monotonic
// CHECK-NOT: tdist_sim_load
llvm.func @kernel(%arg: !llvm.ptr, %value: i32) {
  %old = llvm.atomicrmw add %arg, %value acq_rel : !llvm.ptr, i32
  %pair = llvm.cmpxchg %arg, %old, %value acq_rel monotonic : !llvm.ptr, i32
  %now = llvm.load %arg atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
  llvm.return
}
// The entry only unpacks the launch's arguments.
// CHECK-LABEL: llvm.func @tdist_kernel_entry
// CHECK-NEXT: llvm.load
llvm.func @tdist_kernel_entry(%args: !llvm.ptr) {
  %first = llvm.load %args : !llvm.ptr -> i64
  llvm.return
}
