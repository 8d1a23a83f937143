//===- generator.h - Random numbers of the simulated NPUs
//--------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_GENERATOR_H
#define TDIST_TORCH_GENERATOR_H

#include <ATen/core/Generator.h>

namespace tdist::npu {

/// The generator that operators on NPU `index` (negative: the current one) use when given none.
const at::Generator &defaultGenerator(c10::DeviceIndex index);

/// A new generator of NPU `index` with torch's default seed.
at::Generator newGenerator(c10::DeviceIndex index);

/// The CPU's generator that does the work of `generator`, one of an NPU's.
at::Generator hostGenerator(const at::Generator &generator);

} // namespace tdist::npu

#endif // TDIST_TORCH_GENERATOR_H
