//===- DeviceMath.cpp - Scalar functions of the NPU's math library --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace {

Value constantLike(OpBuilder &builder, Location location, Value like, double value) {
  return builder.create<arith::ConstantOp>(location, builder.getFloatAttr(like.getType(), value));
}

template <typename Op> Value unary(OpBuilder &builder, Location location, ValueRange operands) {
  return builder.create<Op>(location, operands[0]);
}

Value reciprocal(OpBuilder &builder, Location location, ValueRange operands) {
  Value one = constantLike(builder, location, operands[0], 1.0);
  return builder.create<arith::DivFOp>(location, one, operands[0]);
}

Value relu(OpBuilder &builder, Location location, ValueRange operands) {
  Value zero = constantLike(builder, location, operands[0], 0.0);
  return builder.create<arith::MaximumFOp>(location, operands[0], zero);
}

Value isNan(OpBuilder &builder, Location location, ValueRange operands) {
  return builder.create<arith::CmpFOp>(location, arith::CmpFPredicate::UNO, operands[0],
                                       operands[0]);
}

Value isInf(OpBuilder &builder, Location location, ValueRange operands) {
  Value magnitude = builder.create<math::AbsFOp>(location, operands[0]);
  Value infinity =
      constantLike(builder, location, operands[0], std::numeric_limits<double>::infinity());
  return builder.create<arith::CmpFOp>(location, arith::CmpFPredicate::OEQ, magnitude, infinity);
}

Value power(OpBuilder &builder, Location location, ValueRange operands) {
  return builder.create<math::PowFOp>(location, operands[0], operands[1]);
}

/// Both operands are floats here, unlike in C.
Value ldexp(OpBuilder &builder, Location location, ValueRange operands) {
  Value scale = builder.create<math::Exp2Op>(location, operands[1]);
  return builder.create<arith::MulFOp>(location, operands[0], scale);
}

using Maker = Value (*)(OpBuilder &, Location, ValueRange);

struct Function {
  StringLiteral name;
  unsigned operands;
  Maker make;
};

/// Names end in `f` for 32 bits and in `Dh` for 16, but not all of them.
constexpr std::array functions{
    Function{"atan", 1, unary<math::AtanOp>},
    Function{"isinf", 1, isInf},
    Function{"isnan", 1, isNan},
    Function{"ldexp", 2, ldexp},
    Function{"log1p", 1, unary<math::Log1pOp>},
    Function{"pow", 2, power},
    Function{"recip", 1, reciprocal},
    Function{"relu", 1, relu},
    Function{"round", 1, unary<math::RoundOp>},
    Function{"tan", 1, unary<math::TanOp>},
    Function{"tanh", 1, unary<math::TanhOp>},
};

const Function *find(StringRef name) {
  for (const Function &function : functions) {
    StringRef suffix = name;
    if (suffix.consume_front(function.name) && (suffix.empty() || suffix == "f" || suffix == "Dh"))
      return &function;
  }
  return nullptr;
}

} // namespace

void tdist::convertDeviceMath(func::CallOp call) {
  StringRef name = call.getCallee();
  if (!name.consume_front("__hmf_"))
    return;
  const Function *function = find(name);
  if (!function || call.getNumOperands() != function->operands ||
      !llvm::all_of(call.getOperandTypes(), [](Type type) { return isa<FloatType>(type); }))
    return;
  OpBuilder builder(call);
  call.getResult(0).replaceAllUsesWith(function->make(builder, call.getLoc(), call.getOperands()));
  call.erase();
}
