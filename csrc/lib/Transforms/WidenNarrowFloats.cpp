//===- WidenNarrowFloats.cpp - Arithmetic on 16-bit floats, done in 32 bits ===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tdist {
#define GEN_PASS_DEF_WIDENNARROWFLOATS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

bool isNarrow(Type type) { return type.isF16() || type.isBF16(); }

/// Moving bits around needs no wider type, and these two are what widens.
bool isBitwise(Operation *op) {
  return isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp, arith::ExtFOp>(op);
}

bool mustWiden(Operation *op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) || isBitwise(op))
    return false;
  // Only f32 has a short way to the narrow types.
  if (auto truncation = dyn_cast<arith::TruncFOp>(op))
    return isNarrow(truncation.getType()) && !truncation.getIn().getType().isF32();
  return llvm::any_of(op->getOperandTypes(), isNarrow) ||
         llvm::any_of(op->getResultTypes(), isNarrow);
}

void widen(Operation *op) {
  OpBuilder builder(op);
  const Location location = op->getLoc();
  Type wide = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get().getType()))
      operand.set(builder.create<arith::ExtFOp>(location, wide, operand.get()));
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    Type narrow = result.getType();
    if (!isNarrow(narrow))
      continue;
    result.setType(wide);
    auto rounded = builder.create<arith::TruncFOp>(location, narrow, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

struct WidenNarrowFloats : tdist::impl::WidenNarrowFloatsBase<WidenNarrowFloats> {
  void runOnOperation() override {
    SmallVector<Operation *> narrow;
    getOperation().walk([&](Operation *op) {
      if (mustWiden(op))
        narrow.push_back(op);
    });
    for (Operation *op : narrow)
      widen(op);
  }
};

} // namespace
