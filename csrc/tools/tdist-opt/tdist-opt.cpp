//===- tdist-opt.cpp - mlir-opt with the passes of this project -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  // Only what kernels need: registering all of MLIR costs more time than lowering a small kernel.
  mlir::DialectRegistry registry;
  tdist::registerSimDialects(registry);
  tdist::registerTdistPasses();
  tdist::registerSimPipeline();
  // For tests and for people who look at one pass: they make its output short.
  mlir::registerCanonicalizer();
  mlir::registerCSE();
  mlir::memref::registerExpandStridedMetadata();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "triton-distributed-ascend kernel lowering\n", registry));
}
