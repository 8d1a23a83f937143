//===- TensorCalls.cpp - Scans, sorts, flips and gathers as loops ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace {

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getBitWidth() == 1 ? constant.getZExtValue() : constant.getSExtValue();
  return std::nullopt;
}

/// Makes the loops of one call.
class LoopBuilder {
public:
  explicit LoopBuilder(Operation *op) : builder(op), location(op->getLoc()) {}

  Value index(int64_t value) { return builder.create<arith::ConstantIndexOp>(location, value); }
  template <typename Op, typename... Arguments> auto make(Arguments &&...arguments) {
    return builder.create<Op>(location, std::forward<Arguments>(arguments)...);
  }

  /// Runs `body` at each index of the box [lower, upper), the first dimension outermost. It is
  /// given the indices and the tensor so far, and returns the tensor with what it changed.
  Value overBox(ArrayRef<int64_t> lower, ArrayRef<int64_t> upper, Value tensor,
                llvm::function_ref<Value(ValueRange, Value)> body) {
    SmallVector<Value> from, to, step(lower.size(), index(1));
    for (auto [first, last] : llvm::zip_equal(lower, upper)) {
      from.push_back(index(first));
      to.push_back(index(last));
    }
    const scf::LoopNest nest = scf::buildLoopNest(
        builder, location, from, to, step, tensor,
        [&](OpBuilder &inner, Location, ValueRange position, ValueRange carried) {
          const OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
          return SmallVector<Value>{body(position, carried.front())};
        });
    return nest.results.front();
  }

  OpBuilder builder;
  Location location;
};

SmallVector<Value> withDim(ValueRange position, int64_t dim, Value index) {
  SmallVector<Value> changed(position);
  changed[dim] = index;
  return changed;
}

/// out[k] = out[k - 1] + out[k], from a copy of the input; or the same from the other end.
Value scan(func::CallOp call, int64_t dim, bool reverse, bool product) {
  LoopBuilder loops(call);
  Value input = call.getOperand(0);
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> lower(type.getRank(), 0);
  SmallVector<int64_t> upper(type.getShape());
  // The scanned dimension goes outermost, so that inner loops are independent.
  lower[dim] = 1;
  std::swap(lower[0], lower[dim]);
  std::swap(upper[0], upper[dim]);
  return loops.overBox(lower, upper, input, [&](ValueRange nest, Value tensor) -> Value {
    SmallVector<Value> position(nest);
    std::swap(position[0], position[dim]);
    Value at = position[dim];
    Value last = loops.index(type.getDimSize(dim) - 1);
    if (reverse)
      at = loops.make<arith::SubIOp>(last, at);
    Value one = loops.index(1);
    Value before = reverse ? loops.make<arith::AddIOp>(at, one).getResult()
                           : loops.make<arith::SubIOp>(at, one).getResult();
    Value a = loops.make<tensor::ExtractOp>(tensor, withDim(position, dim, before));
    Value b = loops.make<tensor::ExtractOp>(tensor, withDim(position, dim, at));
    Value next;
    if (isa<FloatType>(type.getElementType()))
      next = product ? loops.make<arith::MulFOp>(a, b).getResult()
                     : loops.make<arith::AddFOp>(a, b).getResult();
    else
      next = product ? loops.make<arith::MulIOp>(a, b).getResult()
                     : loops.make<arith::AddIOp>(a, b).getResult();
    return loops.make<tensor::InsertOp>(next, tensor, withDim(position, dim, at));
  });
}

/// A generic whose body computes each element of a tensor of `type` from its indices.
Value generate(Operation *op, RankedTensorType type,
               llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  OpBuilder builder(op);
  const Location location = op->getLoc();
  const int64_t rank = type.getRank();
  Value empty = builder.create<tensor::EmptyOp>(location, type.getShape(), type.getElementType());
  return builder
      .create<linalg::GenericOp>(
          location, type, ValueRange(), empty, builder.getMultiDimIdentityMap(rank),
          SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
          [&](OpBuilder &body, Location, ValueRange) {
            SmallVector<Value> position;
            for (int64_t dim = 0; dim < rank; ++dim)
              position.push_back(body.create<linalg::IndexOp>(location, dim));
            body.create<linalg::YieldOp>(location, element(body, position));
          })
      .getResult(0);
}

Value flip(func::CallOp call, int64_t dim) {
  Value input = call.getOperand(0);
  auto type = cast<RankedTensorType>(input.getType());
  return generate(call, type, [&](OpBuilder &body, ValueRange position) -> Value {
    Value last = body.create<arith::ConstantIndexOp>(call.getLoc(), type.getDimSize(dim) - 1);
    Value mirrored = body.create<arith::SubIOp>(call.getLoc(), last, position[dim]);
    return body.create<tensor::ExtractOp>(call.getLoc(), input, withDim(position, dim, mirrored));
  });
}

Value gather(func::CallOp call, int64_t dim) {
  Value input = call.getOperand(0);
  Value indices = call.getOperand(1);
  auto type = cast<RankedTensorType>(call.getResult(0).getType());
  return generate(call, type, [&](OpBuilder &body, ValueRange position) -> Value {
    Value chosen = body.create<tensor::ExtractOp>(call.getLoc(), indices, position);
    Value at = body.create<arith::IndexCastOp>(call.getLoc(), body.getIndexType(), chosen);
    return body.create<tensor::ExtractOp>(call.getLoc(), input, withDim(position, dim, at));
  });
}

/// Whether `a` belongs behind `b` in ascending order.
Value greater(LoopBuilder &loops, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return loops.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, b);
  return loops.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, a, b);
}

/// A bitonic network: log2(n) stages, stage s of s + 1 steps, each of n / 2 compared pairs.
Value sort(func::CallOp call, int64_t dim, bool descending) {
  LoopBuilder loops(call);
  Value input = call.getOperand(0);
  auto type = cast<RankedTensorType>(input.getType());
  const int64_t size = type.getDimSize(dim);
  const int64_t stages = llvm::Log2_64(size);
  const int64_t rank = type.getRank();
  // LoopBuilder: stage, step (as many as there can be), then the elements.
  SmallVector<int64_t> lower(rank + 2, 0);
  SmallVector<int64_t> upper{stages, stages};
  llvm::append_range(upper, type.getShape());
  return loops.overBox(lower, upper, input, [&](ValueRange nest, Value tensor) -> Value {
    Value stage = nest[0];
    Value step = nest[1];
    ValueRange position = nest.drop_front(2);
    Value at = position[dim];
    Value one = loops.index(1);
    Value shift = loops.make<arith::SubIOp>(stage, step);
    // Steps beyond the stage's own have a negative shift and do nothing.
    Value zero = loops.index(0);
    Value active = loops.make<arith::CmpIOp>(arith::CmpIPredicate::sge, shift, zero);
    Value distance =
        loops.make<arith::ShLIOp>(one, loops.make<arith::MaxSIOp>(shift, zero).getResult());
    Value other = loops.make<arith::XOrIOp>(at, distance);
    Value first = loops.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, other, at);
    Value block = loops.make<arith::ShLIOp>(one, loops.make<arith::AddIOp>(stage, one).getResult());
    Value down = loops.make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                           loops.make<arith::AndIOp>(at, block).getResult(), zero);
    if (descending)
      down = loops.make<arith::XOrIOp>(down, loops.make<arith::ConstantIntOp>(1, 1).getResult());
    Value a = loops.make<tensor::ExtractOp>(tensor, withDim(position, dim, at));
    Value b = loops.make<tensor::ExtractOp>(tensor, withDim(position, dim, other));
    Value wrong = loops.make<arith::SelectOp>(down, greater(loops, b, a), greater(loops, a, b));
    Value swap =
        loops.make<arith::AndIOp>(wrong, loops.make<arith::AndIOp>(active, first).getResult());
    Value newA = loops.make<arith::SelectOp>(swap, b, a);
    Value newB = loops.make<arith::SelectOp>(swap, a, b);
    Value half = loops.make<tensor::InsertOp>(newA, tensor, withDim(position, dim, at));
    return loops.make<tensor::InsertOp>(newB, half, withDim(position, dim, other));
  });
}

/// The result of `call` computed here; null for what is not known.
Value convert(func::CallOp call) {
  StringRef name = call.getCallee();
  if (!name.consume_front("triton_") || call.getNumResults() != 1 || call.getNumOperands() < 2)
    return {};
  const auto is = [&](StringRef function) {
    return name == function || name.starts_with((function + "_").str());
  };
  auto type = dyn_cast<RankedTensorType>(call.getOperand(0).getType());
  const bool isGather = is("gather");
  const std::optional<int64_t> dim = constantOf(call.getOperand(isGather ? 2 : 1));
  if (!type || !type.hasStaticShape() || !dim || *dim < 0 || *dim >= type.getRank())
    return {};
  if (isGather)
    return gather(call, *dim);
  if (is("flip"))
    return flip(call, *dim);
  const std::optional<int64_t> flag =
      call.getNumOperands() > 2 ? constantOf(call.getOperand(2)) : std::nullopt;
  if (!flag)
    return {};
  if (is("cumsum") || is("cumprod"))
    return scan(call, *dim, *flag != 0, is("cumprod"));
  if (is("sort") && llvm::isPowerOf2_64(type.getDimSize(*dim)))
    return sort(call, *dim, *flag != 0);
  return {};
}

} // namespace

void tdist::convertTensorCall(func::CallOp call) {
  if (Value result = convert(call)) {
    call.getResult(0).replaceAllUsesWith(result);
    call.erase();
  }
}

void tdist::convertHistogram(Operation *op) {
  auto input = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!input || !type || !input.hasStaticShape() || type.getRank() != 1 ||
      !input.getElementType().isInteger() || op->getNumOperands() != 1)
    return;
  LoopBuilder loops(op);
  Value zero = loops.make<arith::ConstantOp>(loops.builder.getZeroAttr(type.getElementType()));
  Value one = loops.make<arith::ConstantOp>(loops.builder.getIntegerAttr(type.getElementType(), 1));
  Value empty = loops.make<tensor::EmptyOp>(type.getShape(), type.getElementType());
  Value cleared = loops.make<linalg::FillOp>(zero, empty).getResult(0);
  const SmallVector<int64_t> lower(input.getRank(), 0);
  Value counts = loops.overBox(
      lower, input.getShape(), cleared, [&](ValueRange position, Value tensor) -> Value {
        Value value = loops.make<tensor::ExtractOp>(op->getOperand(0), position);
        Value bin = loops.make<arith::IndexCastOp>(loops.builder.getIndexType(), value);
        // A value outside of all bins counts nowhere; one unsigned comparison finds both ends.
        Value inside = loops.make<arith::CmpIOp>(arith::CmpIPredicate::ult, bin,
                                                 loops.index(type.getDimSize(0)));
        Value at = loops.make<arith::SelectOp>(inside, bin, loops.index(0));
        Value count = loops.make<tensor::ExtractOp>(tensor, at);
        Value more = loops.make<arith::AddIOp>(
            count, loops.make<arith::SelectOp>(inside, one, zero).getResult());
        return loops.make<tensor::InsertOp>(more, tensor, at);
      });
  op->getResult(0).replaceAllUsesWith(counts);
  op->erase();
}

LogicalResult tdist::convertElementwiseBinary(Operation *op) {
  // The attribute of a dialect that is not registered is known by its text only.
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  Attribute function = properties ? properties.get("fun") : Attribute();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (function)
    function.print(stream);
  if (stream.str() != "#hfusion.binary_fn<mod>" || op->getNumOperands() != 3 ||
      op->getNumResults() != 1)
    return failure();
  OpBuilder builder(op);
  Value a = op->getOperand(0);
  Value b = op->getOperand(1);
  Value remainder = isa<FloatType>(getElementTypeOrSelf(a.getType()))
                        ? builder.create<arith::RemFOp>(op->getLoc(), a, b).getResult()
                        : builder.create<arith::RemSIOp>(op->getLoc(), a, b).getResult();
  op->getResult(0).replaceAllUsesWith(remainder);
  op->erase();
  return success();
}
