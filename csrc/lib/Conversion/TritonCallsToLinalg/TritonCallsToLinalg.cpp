//===- TritonCallsToLinalg.cpp - Functions that the adapter leaves to a library ===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTTRITONCALLSTOLINALG
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

struct ConvertTritonCallsToLinalg
    : tdist::impl::ConvertTritonCallsToLinalgBase<ConvertTritonCallsToLinalg> {
  void runOnOperation() override {}
};

} // namespace
