//===- Soc.h - Which NPU a kernel is compiled for -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tdist {

/// The generations of NPUs, which differ in what their compilers and aclshmem can do.
enum class SocGeneration { a2, a3, ascend950 };

/// The generation that the SoC `name` belongs to, such as Ascend910B3; empty when it is unknown.
std::optional<SocGeneration> socGeneration(llvm::StringRef name);

} // namespace tdist
