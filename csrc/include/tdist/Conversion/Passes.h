//===- Passes.h - From linalg IR to native code and to HIVM ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "tdist/Conversion/HIVMDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace tdist {

#define GEN_PASS_DECL
#include "tdist/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tdist/Conversion/Passes.h.inc"

/// What the way to native code depends on beside the kernel.
struct SimPipelineOptions {
  /// Width in bits of the vector registers that loops are tiled for.
  unsigned vectorBits = 0;
  /// Number of those registers.
  unsigned vectorRegisters = 0;
  /// Whether tl.device_print prints.
  bool printing = true;
  /// Whether the runtime does the loads and stores of memory that others may see.
  bool strict = false;
};

/// The vector registers of the machine that this process runs on.
SimPipelineOptions hostPipelineOptions();

/// Appends the passes that take the generic linalg IR of triton-ascend's adapter to the LLVM
/// dialect, with the entry point that the simulator's runtime calls.
void buildSimPipeline(mlir::OpPassManager &manager, const SimPipelineOptions &options);

/// Makes the pipeline known on the command line as `--tdist-to-sim`.
void registerSimPipeline();

/// Appends the passes that turn the distributed operations in generic linalg IR of triton-ascend's
/// adapter into those of AscendNPU-IR, for the SoC of that name.
void buildHIVMPipeline(mlir::OpPassManager &manager, llvm::StringRef soc);

/// Makes the pipeline known on the command line as `--tdist-lower-to-hivm`.
void registerHIVMPipeline();

/// Registers the dialects, and the models of their interfaces, that the pipeline reads or makes.
void registerSimDialects(mlir::DialectRegistry &registry);

} // namespace tdist
