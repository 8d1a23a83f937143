//===- fallback.h - Operators of the CPU for tensors on npu
//------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_FALLBACK_H
#define TDIST_TORCH_FALLBACK_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tdist::npu {

/// Boxed kernel: runs the CPU's kernel of `op` on host aliases of the arguments. Arguments on
/// different NPUs, or on NPU and CPU (but for 0-dimensional ones and indices), are an error as on
/// hardware.
void runOnHost(const c10::OperatorHandle &op, torch::jit::Stack *stack);

/// As runOnHost, but computes float16 and bfloat16 in float32 and rounds the result once, which is
/// what the NPU's cube unit does; torch's own float16 product on the CPU is some 200 times slower.
void runOnHostInFloat32(const c10::OperatorHandle &op, torch::jit::Stack *stack);

} // namespace tdist::npu

#endif // TDIST_TORCH_FALLBACK_H
