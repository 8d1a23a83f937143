//===- MatmulToVector.cpp - Contractions to register-tiled loops ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTMATMULTOVECTOR
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// The part of the result that stays in registers while the inner dimension is walked.
struct RegisterTile {
  int64_t rows;
  int64_t columns; // in vectors
  int64_t width;   // of a vector, in elements
};

/// The largest power of two that divides `size` and is no more than `limit`.
int64_t divisorUpTo(int64_t size, int64_t limit) {
  int64_t divisor = 1;
  while (divisor * 2 <= limit && size % (divisor * 2) == 0)
    divisor *= 2;
  return divisor;
}

/// Half of the registers hold the tile, the rest operands; the more rows and columns, the fewer
/// loads there are for each multiply-add.
RegisterTile chooseTile(int64_t rows, int64_t columns, unsigned elementBits, unsigned vectorBits,
                        unsigned registers) {
  RegisterTile tile{};
  tile.width = divisorUpTo(columns, std::max(1U, vectorBits / elementBits));
  tile.columns = divisorUpTo(columns / tile.width, 2);
  tile.rows = divisorUpTo(rows, registers / 2 / tile.columns);
  return tile;
}

/// The type that products are summed in: 16-bit floats are too narrow for it.
Type accumulatorType(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(type.getContext())
             : type;
}

class Matmul {
public:
  Matmul(linalg::LinalgOp op, unsigned vectorBits, unsigned registers)
      : op(op), location(op.getLoc()), builder(op), vectorBits(vectorBits), registers(registers),
        roundsOperands(asksForHf32(op)) {}

  LogicalResult convert() {
    for (Value operand : op->getOperands())
      if (!cast<MemRefType>(operand.getType()).hasStaticShape())
        return emitError(tdist::kernelLocation(location))
               << "a dot of dynamic shape is not supported on simulated NPUs";
    Value result = op.getDpsInits().front();
    Type type = accumulatorType(cast<MemRefType>(result.getType()).getElementType());
    Value a = operand(op.getDpsInputs()[0], type);
    Value b = operand(op.getDpsInputs()[1], type);
    Value c = inType(result, type);
    multiply(a, b, c);
    if (c != result)
      convertElements(c, result);
    op.erase();
    return success();
  }

private:
  /// The attribute is spelt so by triton-ascend's adapter.
  static bool asksForHf32(linalg::LinalgOp op) {
    auto precision = op->getAttrOfType<StringAttr>("input_precison");
    return precision && precision.getValue() == "hf32";
  }

  /// What is multiplied: `source`, in the precision that the kernel asks for.
  Value operand(Value source, Type type) {
    auto sourceType = cast<MemRefType>(source.getType());
    if (!roundsOperands || !sourceType.getElementType().isF32())
      return inType(source, type);
    Value copy =
        builder.create<memref::AllocOp>(location, MemRefType::get(sourceType.getShape(), type));
    forEachElement(source, copy,
                   [&](OpBuilder &body, Value value) { return roundToHf32(body, value); });
    return copy;
  }

  /// To the nearest float with 11 bits of mantissa, to even if there are two; NaN stays as it is.
  Value roundToHf32(OpBuilder &body, Value value) {
    constexpr int64_t droppedBits = 23 - 11;
    Type integer = body.getI32Type();
    const auto constant = [&](int64_t bits) -> Value {
      return body.create<arith::ConstantIntOp>(location, bits, 32);
    };
    Value bits = body.create<arith::BitcastOp>(location, integer, value);
    Value last = body.create<arith::AndIOp>(
        location, body.create<arith::ShRUIOp>(location, bits, constant(droppedBits)), constant(1));
    Value half = body.create<arith::AddIOp>(location, last, constant((1 << (droppedBits - 1)) - 1));
    Value sum = body.create<arith::AddIOp>(location, bits, half);
    Value kept = body.create<arith::AndIOp>(location, sum, constant(-(1 << droppedBits)));
    Value rounded = body.create<arith::BitcastOp>(location, value.getType(), kept);
    Value isNan = body.create<arith::CmpFOp>(location, arith::CmpFPredicate::UNO, value, value);
    return body.create<arith::SelectOp>(location, isNan, value, rounded);
  }

  /// `source` itself where it can be read in vectors of `type`, else a converted copy.
  Value inType(Value source, Type type) {
    auto sourceType = cast<MemRefType>(source.getType());
    if (sourceType.getElementType() == type && sourceType.getLayout().isIdentity())
      return source;
    Value copy =
        builder.create<memref::AllocOp>(location, MemRefType::get(sourceType.getShape(), type));
    convertElements(source, copy);
    return copy;
  }

  void convertElements(Value from, Value to) {
    Type type = cast<MemRefType>(to.getType()).getElementType();
    forEachElement(from, to,
                   [&](OpBuilder &body, Value value) { return convertScalar(body, value, type); });
  }

  void forEachElement(Value from, Value to, llvm::function_ref<Value(OpBuilder &, Value)> convert) {
    const int64_t rank = cast<MemRefType>(from.getType()).getRank();
    const AffineMap identity = builder.getMultiDimIdentityMap(rank);
    const SmallVector<utils::IteratorType> parallel(rank, utils::IteratorType::parallel);
    builder.create<linalg::GenericOp>(location, from, to, ArrayRef{identity, identity}, parallel,
                                      [&](OpBuilder &body, Location, ValueRange arguments) {
                                        body.create<linalg::YieldOp>(location,
                                                                     convert(body, arguments[0]));
                                      });
  }

  Value convertScalar(OpBuilder &body, Value value, Type type) {
    const unsigned from = value.getType().getIntOrFloatBitWidth();
    const unsigned to = type.getIntOrFloatBitWidth();
    if (value.getType() == type)
      return value;
    if (isa<IntegerType>(type))
      return body.create<arith::ExtSIOp>(location, type, value);
    if (from < to)
      return body.create<arith::ExtFOp>(location, type, value);
    return body.create<arith::TruncFOp>(location, type, value);
  }

  void multiply(Value a, Value b, Value c) {
    auto type = cast<MemRefType>(c.getType());
    const int64_t rank = type.getRank();
    const int64_t rows = type.getDimSize(rank - 2);
    const int64_t columns = type.getDimSize(rank - 1);
    const RegisterTile tile =
        chooseTile(rows, columns, type.getElementTypeBitWidth(), vectorBits, registers);
    // Columns outside rows: a panel of `b` stays in the cache while the rows of `a` go by.
    SmallVector<Value> lower(rank, index(builder, 0)), upper, step;
    for (int64_t batch = 0; batch < rank - 2; ++batch) {
      upper.push_back(index(builder, type.getDimSize(batch)));
      step.push_back(index(builder, 1));
    }
    upper.append({index(builder, columns), index(builder, rows)});
    step.append({index(builder, tile.columns * tile.width), index(builder, tile.rows)});
    scf::buildLoopNest(builder, location, lower, upper, step,
                       [&](OpBuilder &body, Location, ValueRange position) {
                         multiplyTile(body, tile, a, b, c, position);
                       });
  }

  void multiplyTile(OpBuilder &body, const RegisterTile &tile, Value a, Value b, Value c,
                    ValueRange position) {
    const ValueRange batch = position.drop_back(2);
    Value firstColumn = position[position.size() - 2];
    Value firstRow = position.back();
    Type element = cast<MemRefType>(c.getType()).getElementType();
    auto vectorType = VectorType::get(tile.width, element);
    const int64_t depth = cast<MemRefType>(a.getType()).getShape().back();

    SmallVector<Value> rows, columns;
    for (int64_t row = 0; row < tile.rows; ++row)
      rows.push_back(plus(body, firstRow, row));
    for (int64_t column = 0; column < tile.columns; ++column)
      columns.push_back(plus(body, firstColumn, column * tile.width));

    SmallVector<Value> sums;
    for (Value row : rows)
      for (Value column : columns)
        sums.push_back(
            body.create<vector::LoadOp>(location, vectorType, c, at(batch, row, column)));
    auto loop = body.create<scf::ForOp>(
        location, index(body, 0), index(body, depth), index(body, 1), sums,
        [&](OpBuilder &inner, Location, Value k, ValueRange carried) {
          SmallVector<Value> vectors;
          for (Value column : columns)
            vectors.push_back(
                inner.create<vector::LoadOp>(location, vectorType, b, at(batch, k, column)));
          SmallVector<Value> next;
          for (Value row : rows) {
            Value scalar = inner.create<memref::LoadOp>(location, a, at(batch, row, k));
            Value factor = inner.create<vector::BroadcastOp>(location, vectorType, scalar);
            for (Value vector : vectors)
              next.push_back(multiplyAdd(inner, factor, vector, carried[next.size()]));
          }
          inner.create<scf::YieldOp>(location, next);
        });
    auto sum = loop.getResults().begin();
    for (Value row : rows)
      for (Value column : columns)
        body.create<vector::StoreOp>(location, *sum++, c, at(batch, row, column));
  }

  Value multiplyAdd(OpBuilder &body, Value a, Value b, Value sum) {
    if (isa<FloatType>(getElementTypeOrSelf(sum.getType())))
      return body.create<vector::FMAOp>(location, a, b, sum);
    return body.create<arith::AddIOp>(location, sum, body.create<arith::MulIOp>(location, a, b));
  }

  Value plus(OpBuilder &body, Value value, int64_t offset) {
    if (offset == 0)
      return value;
    return body.create<arith::AddIOp>(location, value, index(body, offset));
  }

  static SmallVector<Value> at(ValueRange batch, Value row, Value column) {
    SmallVector<Value> position(batch);
    position.append({row, column});
    return position;
  }

  Value index(OpBuilder &body, int64_t value) {
    return body.create<arith::ConstantIndexOp>(location, value);
  }

  linalg::LinalgOp op;
  Location location;
  OpBuilder builder;
  unsigned vectorBits;
  unsigned registers;
  bool roundsOperands;
};

struct ConvertMatmulToVector : tdist::impl::ConvertMatmulToVectorBase<ConvertMatmulToVector> {
  using ConvertMatmulToVectorBase::ConvertMatmulToVectorBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op.getOperation()))
        products.push_back(op);
    });
    for (linalg::LinalgOp op : products)
      if (failed(Matmul(op, vectorBits, vectorRegisters).convert()))
        return signalPassFailure();
  }
};

} // namespace
