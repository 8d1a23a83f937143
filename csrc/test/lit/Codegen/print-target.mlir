// RUN: tdist-codegen --print-target | FileCheck %s

// What caches of compiled kernels are keyed by.
// CHECK: triple: {{[a-z0-9_]+-.*linux}}
// CHECK-NEXT: cpu: {{[a-z0-9-]+}}
// CHECK-NEXT: features: {{[+-][a-z0-9]+}}
