//===- OffsetTerms.cpp - Which views an offset of symm_at reaches ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "OffsetTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace {

/// How often a term is contained in each value, as far as sums, loops and conditions tell.
class Multiples {
public:
  explicit Multiples(Value term) : term(term) {}

  bool follow(func::FuncOp function) { return follow(function.getBody().front()); }
  const tdist::Views &movedViews() const { return views; }

private:
  int64_t of(Value value) const { return value == term ? 1 : counts.lookup(value); }
  void set(Value value, int64_t count) {
    if (count)
      counts[value] = count;
  }
  bool isIn(Value value) const { return of(value) != 0; }

  template <class From, class To> void carry(From from, To to) {
    for (auto [source, target] : llvm::zip_equal(from, to))
      set(target, of(source));
  }
  template <class First, class Second> bool areEqual(First first, Second second) const {
    return llvm::all_of(llvm::zip_equal(first, second), [&](const auto &pair) {
      return of(std::get<0>(pair)) == of(std::get<1>(pair));
    });
  }
  template <class Range> bool isInAny(const Range &values) const {
    return llvm::any_of(values, [&](Value value) { return isIn(value); });
  }

  bool follow(Block &block) {
    return llvm::all_of(block, [&](Operation &op) { return follow(op); });
  }

  bool follow(Operation &op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return follow(loop);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return follow(loop);
    if (auto condition = dyn_cast<scf::IfOp>(op))
      return follow(condition);
    if (isa<scf::YieldOp>(op))
      return true; // looked at with its loop or condition
    if (auto condition = dyn_cast<scf::ConditionOp>(op))
      return !isIn(condition.getCondition());
    if (auto sum = dyn_cast<arith::AddIOp>(op)) {
      set(sum, of(sum.getLhs()) + of(sum.getRhs()));
      return true;
    }
    if (auto difference = dyn_cast<arith::SubIOp>(op)) {
      set(difference, of(difference.getLhs()) - of(difference.getRhs()));
      return true;
    }
    if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
      set(op.getResult(0), of(op.getOperand(0)));
      return true;
    }
    if (auto view = dyn_cast<memref::ReinterpretCastOp>(op))
      return follow(view);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op.getRegions(), captured);
    return !isInAny(op.getOperands()) && !isInAny(captured);
  }

  bool follow(memref::ReinterpretCastOp view) {
    if (isInAny(view.getSizes()) || isInAny(view.getStrides()))
      return false;
    for (Value offset : view.getOffsets()) {
      if (of(offset) == 1)
        views.push_back(view);
      else if (isIn(offset))
        return false;
    }
    return true;
  }

  bool follow(scf::ForOp loop) {
    if (isIn(loop.getLowerBound()) || isIn(loop.getUpperBound()) || isIn(loop.getStep()))
      return false;
    carry(loop.getInitArgs(), loop.getRegionIterArgs());
    carry(loop.getInitArgs(), loop.getResults());
    return follow(*loop.getBody()) && areEqual(loop.getYieldedValues(), loop.getRegionIterArgs());
  }

  bool follow(scf::WhileOp loop) {
    carry(loop.getInits(), loop.getBeforeArguments());
    if (!follow(*loop.getBeforeBody()))
      return false;
    carry(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    carry(loop.getConditionOp().getArgs(), loop.getResults());
    return follow(*loop.getAfterBody()) &&
           areEqual(loop.getYieldOp().getResults(), loop.getBeforeArguments());
  }

  bool follow(scf::IfOp condition) {
    if (isIn(condition.getCondition()) || !follow(*condition.thenBlock()))
      return false;
    if (!condition.elseBlock())
      return true;
    carry(condition.thenYield().getResults(), condition.getResults());
    return follow(*condition.elseBlock()) &&
           areEqual(condition.elseYield().getResults(), condition.getResults());
  }

  Value term;
  llvm::DenseMap<Value, int64_t> counts;
  tdist::Views views;
};

/// Follows a 0 along the ways on which it stays one.
class ZeroFollower {
public:
  ZeroFollower(Value zero, const DominanceInfo &dominance) : zero(zero), dominance(dominance) {}

  tdist::ZeroUses follow() {
    add(zero);
    while (!work.empty())
      for (OpOperand &use : work.pop_back_val().getUses())
        follow(use);
    return uses;
  }

private:
  void add(Value value) {
    if (seen.insert(value).second)
      work.push_back(value);
  }

  void follow(OpOperand &use) {
    Operation *op = use.getOwner();
    const unsigned index = use.getOperandNumber();
    if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp, arith::ExtSIOp,
            arith::TruncIOp>(op)) {
      add(op->getResult(0));
    } else if (auto view = dyn_cast<memref::ReinterpretCastOp>(op)) {
      if (llvm::is_contained(view.getOffsets(), use.get()) && dominance.dominates(zero, op))
        uses.views.push_back(view);
      else
        uses.others = true;
    } else if (isa<scf::YieldOp>(op) &&
               isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op->getParentOp())) {
      goRound(op->getParentOp(), index);
    } else if (auto condition = dyn_cast<scf::ConditionOp>(op); condition && index > 0) {
      auto loop = cast<scf::WhileOp>(op->getParentOp());
      add(loop.getAfterArguments()[index - 1]);
      add(loop.getResult(index - 1));
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && index >= loop.getNumControlOperands()) {
      goRound(op, index - loop.getNumControlOperands());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      add(loop.getBeforeArguments()[index]);
    } else {
      uses.others = true;
    }
  }

  void goRound(Operation *op, unsigned index) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      add(loop.getRegionIterArgs()[index]);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      add(loop.getBeforeArguments()[index]);
    else
      add(op->getResult(index));
  }

  Value zero;
  const DominanceInfo &dominance;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work;
  tdist::ZeroUses uses;
};

} // namespace

std::optional<tdist::Views> tdist::viewsMovedBy(Value term, func::FuncOp function) {
  Multiples multiples(term);
  if (!multiples.follow(function))
    return std::nullopt;
  return multiples.movedViews();
}

tdist::ZeroUses tdist::usesOfZero(Value zero, const DominanceInfo &dominance) {
  return ZeroFollower(zero, dominance).follow();
}
