//===- RebasePointers.cpp - symm_at and consume_token to device pointers --===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Addresses.h"
#include "CustomOps.h"
#include "OffsetTerms.h"

#include "tdist/Conversion/ExternCall.h"
#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/VectorCoreDifference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace tdist {
#define GEN_PASS_DEF_REBASEPOINTERS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;
using tdist::ExternCall;

namespace {

/// Gives the views of one kernel their buffers.
class Rebaser {
public:
  explicit Rebaser(func::FuncOp function)
      : function(function), dominance(function),
        cores(tdist::isMixedKernel(function) ? tdist::Cores::cubeAndVector : tdist::Cores::vector) {
  }

  LogicalResult run() {
    SmallVector<ExternCall> calls;
    function.walk([&](Operation *op) {
      const std::optional<ExternCall> call = ExternCall::of(op);
      if (call && call->isOurs() && (call->symbol == "tdist_delta" || call->symbol == "tdist_zero"))
        calls.push_back(*call);
    });
    for (const ExternCall &call : calls)
      if (failed(call.checkRuntimeSymbol()) ||
          failed(isDelta(call) ? lookAtDelta(call) : lookAtZero(call)))
        return failure();
    for (auto &[view, terms] : moved)
      if (failed(rebase(view, terms)))
        return failure();
    for (const ExternCall &call : calls)
      if (failed(replace(call)))
        return failure();
    return success();
  }

private:
  static bool isDelta(const ExternCall &call) { return call.symbol == "tdist_delta"; }

  LogicalResult lookAtDelta(const ExternCall &call) {
    if (std::optional<tdist::Views> views = tdist::viewsMovedBy(call.op->getResult(0), function)) {
      for (memref::ReinterpretCastOp view : *views)
        moved[view].push_back(call);
    } else {
      needed.insert(call.op);
    }
    return success();
  }

  LogicalResult lookAtZero(const ExternCall &call) {
    const tdist::ZeroUses uses = tdist::usesOfZero(call.op->getResult(0), dominance);
    for (memref::ReinterpretCastOp view : uses.views)
      moved[view].push_back(call);
    if (uses.others)
      needed.insert(call.op);
    return success();
  }

  LogicalResult rebase(memref::ReinterpretCastOp view, SmallVector<ExternCall> &terms) {
    // All of them are there before the view is, so they are in one order.
    llvm::sort(terms, [&](const ExternCall &first, const ExternCall &second) {
      return dominance.properlyDominates(first.op, second.op);
    });
    Value buffer = tdist::bufferOf(view.getSource());
    for (const ExternCall &term : terms) {
      buffer = apply(term, buffer);
      if (!buffer)
        return failure();
    }
    view.getSourceMutable().assign(buffer);
    return success();
  }

  /// What symm_at or consume_token makes of `buffer`; null after an error.
  Value apply(const ExternCall &call, Value buffer) {
    Value &result = applied[{call.op, buffer}];
    if (result)
      return result;
    auto type = dyn_cast<MemRefType>(buffer.getType());
    const StringRef element = type ? tdist::elementName(type.getElementType()) : StringRef();
    if (element.empty() || type.getRank() != 1) {
      call.error() << (isDelta(call) ? "symm_at" : "consume_token")
                   << ": aclshmem has no pointers of type " << buffer.getType()
                   << ": use elements of 8 to 64 bits, integers or floats";
      return {};
    }
    OpBuilder builder(call.op);
    Operation *made = buffer.getDefiningOp();
    builder.setInsertionPointAfter(made && !dominance.dominates(made, call.op) ? made : call.op);
    tdist::DeviceCall device{.symbol = ("aclshmem_ptr_" + element).str(),
                             .operands = {buffer},
                             .result = type,
                             .cores = cores,
                             .isPure = true};
    if (isDelta(call)) {
      device.operands.push_back(call.op->getOperand(1));
    } else {
      device.symbol = ("aclshmem_consume_token_" + element + "_ptr_1d").str();
      device.operands.push_back(call.op->getOperand(0));
    }
    return result = tdist::createCustomOp(builder, call.op->getLoc(), device)->getResult(0);
  }

  LogicalResult replace(const ExternCall &call) {
    OpBuilder builder(call.op);
    const Location location = call.op->getLoc();
    Value value = builder.create<arith::ConstantIntOp>(location, 0, 64);
    if (needed.contains(call.op)) {
      value = isDelta(call) ? distance(builder, call) : consumed(builder, call, value);
      if (!value)
        return failure();
    }
    Value address = call.op->getOperand(0);
    call.op->getResult(0).replaceAllUsesWith(value);
    call.op->erase();
    tdist::eraseUnusedAddress(address);
    return success();
  }

  /// How many elements lie between a buffer here and on the other PE.
  Value distance(OpBuilder &builder, const ExternCall &call) {
    Value view = tdist::pointedTo(call.op->getOperand(0));
    if (!view) {
      call.error() << "symm_at: the pointer is not one of the kernel's arguments plus an offset";
      return {};
    }
    Value here = tdist::bufferOf(view);
    Value there = apply(call, here);
    if (!there)
      return {};
    const Location location = call.op->getLoc();
    builder.setInsertionPointAfter(there.getDefiningOp());
    const auto addressOf = [&](Value buffer) -> Value {
      return builder.create<arith::IndexCastOp>(
          location, builder.getI64Type(),
          builder.create<memref::ExtractAlignedPointerAsIndexOp>(location, buffer));
    };
    Value bytes = builder.create<arith::SubIOp>(location, addressOf(there), addressOf(here));
    Value size =
        builder.create<arith::ExtSIOp>(location, builder.getI64Type(), call.op->getOperand(2));
    return builder.create<arith::DivSIOp>(location, bytes, size);
  }

  Value consumed(OpBuilder &builder, const ExternCall &call, Value zero) const {
    return tdist::createCustomOp(builder, call.op->getLoc(),
                                 {.symbol = "aclshmem_consume_token_int64",
                                  .operands = {zero, call.op->getOperand(0)},
                                  .result = builder.getI64Type(),
                                  .cores = cores,
                                  .isPure = true})
        ->getResult(0);
  }

  func::FuncOp function;
  DominanceInfo dominance;
  tdist::Cores cores;
  llvm::MapVector<memref::ReinterpretCastOp, SmallVector<ExternCall>> moved;
  llvm::DenseSet<Operation *> needed; // whose value is used beside views
  llvm::DenseMap<std::pair<Operation *, Value>, Value> applied;
};

struct RebasePointers : tdist::impl::RebasePointersBase<RebasePointers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(Rebaser(function).run()))
        return signalPassFailure();
  }
};

} // namespace
