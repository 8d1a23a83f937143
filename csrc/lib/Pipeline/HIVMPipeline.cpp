//===- HIVMPipeline.cpp - From linalg IR to what bishengir-compile reads --===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/Soc.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void tdist::buildHIVMPipeline(OpPassManager &manager, StringRef soc) {
  // There, no pointer can be the result of a call.
  if (socGeneration(soc) != SocGeneration::ascend950)
    manager.addPass(createRebasePointers());
  manager.addPass(createConvertExternToHIVM({.soc = soc.str()}));
}

namespace {

struct CommandLineOptions : PassPipelineOptions<CommandLineOptions> {
  Option<std::string> soc{*this, "soc", llvm::cl::desc("The SoC, such as Ascend910B3")};
};

} // namespace

void tdist::registerHIVMPipeline() {
  PassPipelineRegistration<CommandLineOptions>(
      "tdist-lower-to-hivm",
      "Lower the distributed operations in generic linalg IR of triton-ascend's adapter to HIVM",
      [](OpPassManager &manager, const CommandLineOptions &options) {
        buildHIVMPipeline(manager, options.soc);
      });
}
