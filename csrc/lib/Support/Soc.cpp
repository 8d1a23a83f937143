//===- Soc.cpp - Which NPU a kernel is compiled for -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Soc.h"

#include "llvm/ADT/StringSwitch.h"

std::optional<tdist::SocGeneration> tdist::socGeneration(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<SocGeneration>>(name)
      .StartsWith("Ascend910B", SocGeneration::a2)
      .StartsWith("Ascend910_93", SocGeneration::a3)
      .StartsWith("Ascend910_95", SocGeneration::ascend950)
      .StartsWith("Ascend950", SocGeneration::ascend950)
      .Default(std::nullopt);
}
