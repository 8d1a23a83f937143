//===- SplitVectorHalves.cpp - Both vector cores of a mixed kernel --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/ExternCall.h"
#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"
#include "tdist/Conversion/VectorCoreDifference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

#include <optional>

namespace tdist {
#define GEN_PASS_DEF_SPLITVECTORHALVES
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;
using tdist::VectorCoreDifference;

namespace {

/// What is there becomes the first core's; the second one gets what differs beside it, op by op.
class Splitter {
public:
  explicit Splitter(func::FuncOp function) : function(function), difference(function) {}

  LogicalResult split() {
    if (failed(check()))
      return failure();
    split(function.getBody().front());
    function.walk([](Operation *op) {
      if (tdist::isSubVecId(op))
        becomeConstant(op, 0);
    });
    return success();
  }

private:
  /// The cube core has no sub_vec_id: what it multiplies is the same for both vector cores.
  LogicalResult check() {
    bool isRight = true;
    function.walk([&](linalg::ContractionOpInterface product) {
      if (!difference.isApart(product))
        return;
      isRight = false;
      emitError(tdist::kernelLocation(product->getLoc()))
          << "tl.dot of values that depend on sub_vec_id() cannot be simulated: the cube core of a "
             "mixed kernel has no sub_vec_id, and the parts that its two vector cores make are not "
             "put together";
    });
    return success(isRight);
  }

  static void becomeConstant(Operation *op, int64_t core) {
    OpBuilder builder(op);
    Value constant = builder.create<arith::ConstantOp>(
        op->getLoc(), builder.getIntegerAttr(op->getResult(0).getType(), core));
    op->getResult(0).replaceAllUsesWith(constant);
    op->erase();
  }

  void split(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        continue;
      const bool isStructured = isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op);
      if (isStructured && difference.isInStep(&op)) {
        if (auto condition = dyn_cast<scf::IfOp>(op))
          splitIf(condition);
        else if (auto loop = dyn_cast<scf::ForOp>(op))
          splitFor(loop);
        else
          splitWhile(cast<scf::WhileOp>(op));
      } else if (isStructured || difference.isIn(&op)) {
        copy(op);
      }
    }
  }

  /// The second core's own op, behind the first one's.
  void copy(Operation &op) {
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfter(&op);
    Operation *copied = builder.clone(op, second);
    copyProperties(&op, copied);
    copied->walk([](Operation *inner) {
      if (tdist::isSubVecId(inner))
        becomeConstant(inner, 1);
    });
    if (tdist::isSubVecId(&op)) // it has just become a constant
      second.map(op.getResult(0), op.getNextNode()->getResult(0));
  }

  /// Cloning an op of an unregistered dialect loses its properties.
  static void copyProperties(Operation *from, Operation *to) {
    SmallVector<Operation *> originals;
    from->walk([&](Operation *op) { originals.push_back(op); });
    const auto *original = originals.begin();
    to->walk([&](Operation *op) {
      if (!op->isRegistered())
        (void)op->setPropertiesFromAttribute((*original)->getPropertiesAsAttribute(), nullptr);
      ++original;
    });
  }

  SmallVector<unsigned> indicesThatDiffer(ValueRange values) const {
    SmallVector<unsigned> indices;
    for (auto [index, value] : llvm::enumerate(values))
      if (difference.contains(value))
        indices.push_back(index);
    return indices;
  }

  /// `values`, and behind them what the second core has at `indices`.
  SmallVector<Value> withSecond(ValueRange values, ArrayRef<unsigned> indices) const {
    SmallVector<Value> all(values);
    for (const unsigned index : indices)
      all.push_back(second.lookupOrDefault(values[index]));
    return all;
  }
  static SmallVector<Type> withSecondTypes(TypeRange types, ArrayRef<unsigned> indices) {
    SmallVector<Type> all(types);
    for (const unsigned index : indices)
      all.push_back(types[index]);
    return all;
  }

  void addArguments(Block &block, ArrayRef<unsigned> indices, unsigned first) {
    for (const unsigned index : indices) {
      Value argument = block.getArgument(first + index);
      second.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
    }
  }

  void extend(Operation *terminator, unsigned first, ArrayRef<unsigned> indices) {
    terminator->setOperands([&] {
      SmallVector<Value> all(terminator->getOperands().take_front(first));
      llvm::append_range(all, withSecond(terminator->getOperands().drop_front(first), indices));
      return all;
    }());
  }

  void replace(Operation *before, Operation *after, ArrayRef<unsigned> indices) {
    after->setAttrs(before->getAttrs());
    const unsigned count = before->getNumResults();
    for (auto [index, result] : llvm::enumerate(before->getResults()))
      result.replaceAllUsesWith(after->getResult(index));
    for (auto [position, index] : llvm::enumerate(indices)) {
      difference.add(after->getResult(index));
      second.map(after->getResult(index), after->getResult(count + position));
    }
    before->erase();
  }

  void splitIf(scf::IfOp condition) {
    const SmallVector<unsigned> indices = indicesThatDiffer(condition.getResults());
    for (Region &region : condition->getRegions())
      for (Block &block : region) {
        split(block);
        extend(block.getTerminator(), 0, indices);
      }
    if (indices.empty())
      return;
    OpBuilder builder(condition);
    auto whole = builder.create<scf::IfOp>(condition.getLoc(),
                                           withSecondTypes(condition.getResultTypes(), indices),
                                           condition.getCondition(), /*withElseRegion=*/true);
    whole.getThenRegion().takeBody(condition.getThenRegion());
    whole.getElseRegion().takeBody(condition.getElseRegion());
    replace(condition, whole, indices);
  }

  void splitFor(scf::ForOp loop) {
    const SmallVector<unsigned> indices = indicesThatDiffer(loop.getRegionIterArgs());
    if (indices.empty()) {
      split(*loop.getBody());
      return;
    }
    OpBuilder builder(loop);
    auto whole =
        builder.create<scf::ForOp>(loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                   loop.getStep(), withSecond(loop.getInitArgs(), indices));
    whole.getRegion().takeBody(loop.getRegion());
    addArguments(*whole.getBody(), indices, loop.getNumInductionVars());
    split(*whole.getBody());
    extend(whole.getBody()->getTerminator(), 0, indices);
    replace(loop, whole, indices);
  }

  void splitWhile(scf::WhileOp loop) {
    const SmallVector<unsigned> before = indicesThatDiffer(loop.getBeforeArguments());
    const SmallVector<unsigned> after = indicesThatDiffer(loop.getAfterArguments());
    OpBuilder builder(loop);
    auto whole =
        builder.create<scf::WhileOp>(loop.getLoc(), withSecondTypes(loop.getResultTypes(), after),
                                     withSecond(loop.getInits(), before));
    whole.getBefore().takeBody(loop.getBefore());
    whole.getAfter().takeBody(loop.getAfter());
    addArguments(*whole.getBeforeBody(), before, 0);
    split(*whole.getBeforeBody());
    extend(whole.getConditionOp(), 1, after);
    addArguments(*whole.getAfterBody(), after, 0);
    split(*whole.getAfterBody());
    extend(whole.getYieldOp(), 0, before);
    replace(loop, whole, after);
  }

  func::FuncOp function;
  VectorCoreDifference difference;
  IRMapping second; // from what there was to what the second core has instead
};

struct SplitVectorHalves : tdist::impl::SplitVectorHalvesBase<SplitVectorHalves> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (tdist::isMixedKernel(function) && failed(split(function)))
        return signalPassFailure();
    }
  }

  static LogicalResult split(func::FuncOp function) {
    bool asksForCore = false;
    std::optional<tdist::ExternCall> asksForCount;
    function.walk([&](Operation *op) {
      asksForCore |= tdist::isSubVecId(op);
      if (tdist::isRuntimeCall(op, "tdist_sub_vec_num"))
        asksForCount = tdist::ExternCall::of(op);
    });
    if (asksForCount)
      return tdist::refuseSubVecNum(*asksForCount);
    return asksForCore ? Splitter(function).split() : success();
  }
};

} // namespace
