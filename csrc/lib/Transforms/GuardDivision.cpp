//===- GuardDivision.cpp - Integer division that no operand can stop ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace tdist {
#define GEN_PASS_DEF_GUARDDIVISION
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

bool isSigned(Operation *op) { return isa<arith::DivSIOp, arith::RemSIOp>(op); }
bool isRemainder(Operation *op) { return isa<arith::RemSIOp, arith::RemUIOp>(op); }

/// Whether the divisor is a constant that divides everything.
bool isSafe(Operation *op) {
  APInt divisor;
  return matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) && !divisor.isZero() &&
         !(isSigned(op) && divisor.isAllOnes());
}

void guard(Operation *op) {
  OpBuilder builder(op);
  const Location location = op->getLoc();
  Value dividend = op->getOperand(0);
  Value divisor = op->getOperand(1);
  Type type = divisor.getType();
  const unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  const auto constant = [&](const APInt &value) -> Value {
    return builder.create<arith::ConstantOp>(location, builder.getIntegerAttr(type, value));
  };
  const auto equal = [&](Value a, Value b) -> Value {
    return builder.create<arith::CmpIOp>(location, arith::CmpIPredicate::eq, a, b);
  };
  Value none = constant(APInt::getZero(bits));
  Value isZero = equal(divisor, none);
  Value unsafe = isZero;
  if (isSigned(op)) {
    // The quotient is one more than the largest number; it wraps to the dividend, which is also
    // what a division by 1 gives.
    Value overflows = builder.create<arith::AndIOp>(
        location, equal(dividend, constant(APInt::getSignedMinValue(bits))),
        equal(divisor, constant(APInt::getAllOnes(bits))));
    unsafe = builder.create<arith::OrIOp>(location, unsafe, overflows);
  }
  op->setOperand(
      1, builder.create<arith::SelectOp>(location, unsafe, constant(APInt(bits, 1)), divisor));
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  Value byZero = isRemainder(op) ? dividend : none;
  auto guarded = builder.create<arith::SelectOp>(location, isZero, byZero, result);
  result.replaceAllUsesExcept(guarded, guarded);
}

struct GuardDivision : tdist::impl::GuardDivisionBase<GuardDivision> {
  void runOnOperation() override {
    SmallVector<Operation *> divisions;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) && !isSafe(op))
        divisions.push_back(op);
    });
    for (Operation *op : divisions)
      guard(op);
  }
};

} // namespace
