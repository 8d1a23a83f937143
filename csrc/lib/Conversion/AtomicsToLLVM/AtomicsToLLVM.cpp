//===- AtomicsToLLVM.cpp - GenericAtomicRMW to atomic instructions --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTATOMICSTOLLVM
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

constexpr StringLiteral kindName = "GenericAtomicRMW";
constexpr StringLiteral orderName = "MemSemantic";

std::optional<LLVM::AtomicOrdering> parseOrder(StringRef name) {
  return llvm::StringSwitch<std::optional<LLVM::AtomicOrdering>>(name)
      .Case("relaxed", LLVM::AtomicOrdering::monotonic)
      .Case("acquire", LLVM::AtomicOrdering::acquire)
      .Case("release", LLVM::AtomicOrdering::release)
      .Case("acq_rel", LLVM::AtomicOrdering::acq_rel)
      .Default(std::nullopt);
}

/// A compare-and-exchange that fails stores nothing, so there is nothing to release.
LLVM::AtomicOrdering failureOrder(LLVM::AtomicOrdering order) {
  switch (order) {
  case LLVM::AtomicOrdering::acquire:
  case LLVM::AtomicOrdering::acq_rel:
    return LLVM::AtomicOrdering::acquire;
  default:
    return LLVM::AtomicOrdering::monotonic;
  }
}

/// The instruction that does `kind` on `type` at once. Everything else is a loop of
/// compare-and-exchange around the arithmetic that the adapter gives.
std::optional<LLVM::AtomicBinOp> findInstruction(StringRef kind, Type type) {
  using Op = LLVM::AtomicBinOp;
  if (type.isInteger())
    return llvm::StringSwitch<std::optional<Op>>(kind)
        .Case("add", Op::add)
        .Case("and", Op::_and)
        .Case("or", Op::_or)
        .Case("xor", Op::_xor)
        .Case("max", Op::max)
        .Case("min", Op::min)
        .Case("umax", Op::umax)
        .Case("umin", Op::umin)
        .Case("exch", Op::xchg)
        .Default(std::nullopt);
  // LLVM expands a 16-bit fadd with calls into compiler-rt; our own loop needs none.
  if (kind == "fadd" && (type.isF32() || type.isF64()))
    return Op::fadd;
  return std::nullopt;
}

/// One `tl.atomic_*` of a kernel.
class Atomic {
public:
  explicit Atomic(linalg::GenericOp op)
      : op(op), kind(op->getAttrOfType<StringAttr>(kindName).getValue()), inputs(op.getDpsInputs()),
        target(inputs.front()), type(cast<MemRefType>(target.getType())) {}

  LogicalResult convert() {
    if (failed(check()))
      return failure();
    OpBuilder builder(op);
    const Location location = op.getLoc();
    Value result = claimResult(builder);

    const int64_t rank = type.getRank();
    SmallVector<Value> lower(rank), upper(rank), step(rank);
    for (int64_t dim = 0; dim < rank; ++dim) {
      lower[dim] = builder.create<arith::ConstantIndexOp>(location, 0);
      upper[dim] = builder.createOrFold<memref::DimOp>(location, target, dim);
      step[dim] = builder.create<arith::ConstantIndexOp>(location, 1);
    }
    auto metadata = builder.create<memref::ExtractStridedMetadataOp>(location, target);
    Value base =
        builder.create<memref::ExtractAlignedPointerAsIndexOp>(location, metadata.getBaseBuffer());
    scf::buildLoopNest(builder, location, lower, upper, step,
                       [&](OpBuilder &body, Location, ValueRange position) {
                         Value pointer = elementPointer(body, metadata, base, position);
                         SmallVector<Value> operands;
                         for (Value input : llvm::drop_begin(inputs))
                           operands.push_back(loadOperand(body, input, position));
                         Value old = update(body, pointer, operands);
                         if (result)
                           body.create<memref::StoreOp>(location, old, result, position);
                       });
    op.erase();
    // Each once: both operands of a cas may be the same.
    llvm::SmallSetVector<bufferization::ToMemrefOp, 4> memrefs;
    for (Value input : inputs)
      if (auto memref = input.getDefiningOp<bufferization::ToMemrefOp>())
        memrefs.insert(memref);
    for (bufferization::ToMemrefOp memref : memrefs)
      if (memref->use_empty())
        memref.erase();
    return success();
  }

private:
  InFlightDiagnostic error() { return emitError(tdist::kernelLocation(op.getLoc())); }

  LogicalResult check() {
    auto orderAttr = op->getAttrOfType<StringAttr>(orderName);
    const std::optional<LLVM::AtomicOrdering> parsed =
        orderAttr ? parseOrder(orderAttr.getValue()) : LLVM::AtomicOrdering::acq_rel;
    if (!parsed)
      return error() << "atomic_" << kind << " has memory order " << orderAttr
                     << ": expected relaxed, acquire, release or acq_rel";
    order = *parsed;
    const size_t operands = kind == "cas" ? 3 : 2;
    if (op.getNumDpsInputs() != static_cast<int64_t>(operands) || op.getNumDpsInits() != 1 ||
        op->getNumResults() != 0 ||
        !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
      return error() << "atomic_" << kind << " has a form that is not known";
    Type element = type.getElementType();
    const unsigned bits = element.getIntOrFloatBitWidth();
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
      return error() << "atomic_" << kind << " on " << element
                     << " is not possible: the host has atomics of 8, 16, 32 and 64 bits";
    return success();
  }

  /// Finds the copy that stands for the old value, takes its place, and returns the memory for old
  /// values, shaped as the target; null when nobody asks for them.
  Value claimResult(OpBuilder &builder) {
    memref::CopyOp copy = findResultCopy();
    if (!copy)
      return {};
    auto alloc = copy.getTarget().getDefiningOp<memref::AllocOp>();
    alloc->moveBefore(op);
    // What reads the result must come after the loop that makes it.
    for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
      if (isa<bufferization::ToTensorOp>(user) && user->isBeforeInBlock(op))
        user->moveAfter(op);
    copy.erase();
    auto subview = target.getDefiningOp<memref::SubViewOp>();
    if (alloc.getType().getShape() == type.getShape())
      return alloc;
    // Lanes that the mask leaves out have no old value; they read as zero.
    Value zero =
        builder.create<arith::ConstantOp>(op.getLoc(), builder.getZeroAttr(type.getElementType()));
    builder.create<linalg::FillOp>(op.getLoc(), zero, Value(alloc));
    return builder.create<memref::SubViewOp>(op.getLoc(), alloc, subview.getMixedOffsets(),
                                             subview.getMixedSizes(), subview.getMixedStrides());
  }

  /// The copy is made from the same source op, so it has the same location. It comes right before
  /// the generic (for cas: right after it); between them there are only ops without effects.
  memref::CopyOp findResultCopy() {
    const bool after = kind == "cas";
    for (Operation *next = after ? op->getNextNode() : op->getPrevNode(); next;
         next = after ? next->getNextNode() : next->getPrevNode()) {
      if (auto copy = dyn_cast<memref::CopyOp>(next)) {
        return isResultCopy(copy) ? copy : memref::CopyOp();
      }
      if (!isa<memref::AllocOp, bufferization::ToTensorOp, bufferization::ToMemrefOp>(next) &&
          !isMemoryEffectFree(next))
        return {};
    }
    return {};
  }

  bool isResultCopy(memref::CopyOp copy) {
    auto alloc = copy.getTarget().getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc->getBlock() != op->getBlock() || copy.getLoc() != op.getLoc())
      return false;
    Value source = target;
    if (copy.getSource() != source) {
      auto subview = source.getDefiningOp<memref::SubViewOp>();
      if (!subview || subview.getSource() != copy.getSource() ||
          subview.getType().getRank() != alloc.getType().getRank())
        return false;
    }
    // An operand computed from the copied value was loaded by the kernel itself.
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    for (Value input : llvm::drop_begin(inputs)) {
      getBackwardSlice(input, &slice, options);
      if (input.getDefiningOp() == alloc)
        return false;
    }
    return !slice.contains(alloc);
  }

  Value elementPointer(OpBuilder &builder, memref::ExtractStridedMetadataOp metadata, Value base,
                       ValueRange position) {
    const Location location = op.getLoc();
    Value index = metadata.getOffset();
    for (auto [stride, at] : llvm::zip_equal(metadata.getStrides(), position))
      index = builder.create<arith::AddIOp>(location, index,
                                            builder.create<arith::MulIOp>(location, at, stride));
    Type pointerType = LLVM::LLVMPointerType::get(builder.getContext());
    Value address = builder.create<arith::IndexCastOp>(location, builder.getI64Type(), base);
    Value element = builder.create<arith::IndexCastOp>(location, builder.getI64Type(), index);
    return builder.create<LLVM::GEPOp>(
        location, pointerType, type.getElementType(),
        builder.create<LLVM::IntToPtrOp>(location, pointerType, address),
        ArrayRef<LLVM::GEPArg>{element});
  }

  /// Operands that are tensors stay tensors here, so that bufferization knows when they are read.
  Value loadOperand(OpBuilder &builder, Value operand, ValueRange position) {
    if (auto memref = operand.getDefiningOp<bufferization::ToMemrefOp>())
      return builder.create<tensor::ExtractOp>(op.getLoc(), memref.getTensor(), position);
    return builder.create<memref::LoadOp>(op.getLoc(), operand, position);
  }

  Value update(OpBuilder &builder, Value pointer, ValueRange operands) {
    const Location location = op.getLoc();
    if (kind == "cas") {
      Value expected = toInteger(builder, operands[0]);
      Value desired = toInteger(builder, operands[1]);
      auto exchange = builder.create<LLVM::AtomicCmpXchgOp>(location, pointer, expected, desired,
                                                            order, failureOrder(order));
      return fromInteger(builder, builder.create<LLVM::ExtractValueOp>(location, exchange, 0));
    }
    if (kind == "exch")
      return fromInteger(
          builder, builder.create<LLVM::AtomicRMWOp>(location, LLVM::AtomicBinOp::xchg, pointer,
                                                     toInteger(builder, operands[0]), order));
    if (std::optional<LLVM::AtomicBinOp> instruction = findInstruction(kind, type.getElementType()))
      return builder.create<LLVM::AtomicRMWOp>(location, *instruction, pointer, operands[0], order);
    return updateInLoop(builder, pointer, operands[0]);
  }

  /// do { new = body(old, operand); } while (!compare_exchange(old, new)), and gives the last old.
  Value updateInLoop(OpBuilder &builder, Value pointer, Value operand) {
    const Location location = op.getLoc();
    Type integer = integerType(builder);
    const int64_t bytes = integer.getIntOrFloatBitWidth() / 8;
    Value first =
        builder.create<LLVM::LoadOp>(location, integer, pointer, bytes,
                                     /*isVolatile=*/false, /*isNonTemporal=*/false,
                                     /*isInvariant=*/false, LLVM::AtomicOrdering::monotonic);
    auto loop = builder.create<scf::WhileOp>(
        location, TypeRange{integer}, ValueRange{first},
        [&](OpBuilder &body, Location, ValueRange arguments) {
          Value old = fromInteger(body, arguments.front());
          IRMapping mapping;
          Block *block = op.getBlock();
          mapping.map(block->getArgument(0), old);
          mapping.map(block->getArgument(1), operand);
          for (Operation &inner : block->without_terminator())
            body.clone(inner, mapping);
          Value updated = mapping.lookupOrDefault(block->getTerminator()->getOperand(0));
          auto exchange = body.create<LLVM::AtomicCmpXchgOp>(location, pointer, arguments.front(),
                                                             toInteger(body, updated), order,
                                                             failureOrder(order));
          Value seen = body.create<LLVM::ExtractValueOp>(location, exchange, 0);
          Value done = body.create<LLVM::ExtractValueOp>(location, exchange, 1);
          Value again = body.create<arith::XOrIOp>(
              location, done, body.create<arith::ConstantIntOp>(location, 1, 1));
          body.create<scf::ConditionOp>(location, again, ValueRange{seen});
        },
        [&](OpBuilder &body, Location, ValueRange arguments) {
          body.create<scf::YieldOp>(location, arguments);
        });
    return fromInteger(builder, loop.getResult(0));
  }

  IntegerType integerType(OpBuilder &builder) {
    return builder.getIntegerType(type.getElementType().getIntOrFloatBitWidth());
  }
  Value toInteger(OpBuilder &builder, Value value) {
    if (value.getType().isInteger())
      return value;
    return builder.create<arith::BitcastOp>(op.getLoc(), integerType(builder), value);
  }
  Value fromInteger(OpBuilder &builder, Value value) {
    if (type.getElementType().isInteger())
      return value;
    return builder.create<arith::BitcastOp>(op.getLoc(), type.getElementType(), value);
  }

  linalg::GenericOp op;
  StringRef kind;
  SmallVector<Value> inputs; // as long as the object: drop_begin keeps no temporary alive
  Value target;
  MemRefType type;
  LLVM::AtomicOrdering order = LLVM::AtomicOrdering::acq_rel;
};

struct ConvertAtomicsToLLVM : tdist::impl::ConvertAtomicsToLLVMBase<ConvertAtomicsToLLVM> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> atomics;
    getOperation().walk([&](linalg::GenericOp op) {
      if (op->hasAttr(kindName))
        atomics.push_back(op);
    });
    bool failed = false;
    for (linalg::GenericOp op : atomics)
      failed |= mlir::failed(Atomic(op).convert());
    if (failed)
      return signalPassFailure();
  }
};

} // namespace
