//===- tdist-opt.cpp - mlir-opt with the passes of this project -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  // Only what kernels need: registering all of MLIR costs more time than lowering a small kernel.
  mlir::DialectRegistry registry;
  tdist::registerSimDialects(registry);
  tdist::registerTdistPasses();
  tdist::registerSimPipeline();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "triton-distributed-ascend kernel lowering\n", registry));
}
