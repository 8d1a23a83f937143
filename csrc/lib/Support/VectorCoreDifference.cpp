//===- VectorCoreDifference.cpp - What the vector cores have apart -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/VectorCoreDifference.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using tdist::VectorCoreDifference;

namespace {

/// The buffer of the kernel's own that `value` is a view of; null for global memory.
Value localBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value.getDefiningOp<memref::AllocOp>() ? value : Value();
}

/// The operands through which `op` may write memory.
SmallVector<Value> writtenOperands(Operation *op) {
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return {copy.getTarget()};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return {store.getMemRef()};
  if (auto store = dyn_cast<bufferization::MaterializeInDestinationOp>(op))
    return {store.getDest()};
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return SmallVector<Value>(linalg.getDpsInits());
  if (isa<memref::LoadOp, memref::DimOp, bufferization::ToTensorOp, ViewLikeOpInterface>(op))
    return {};
  return SmallVector<Value>(op->getOperands());
}

} // namespace

bool tdist::isSubVecId(Operation *op) { return isRuntimeCall(op, "tdist_sub_vec_id"); }

LogicalResult tdist::refuseSubVecNum(const ExternCall &call) {
  return call.error()
         << "sub_vec_num() is a constant, made before it is known that this kernel uses "
            "tl.dot: write 2, the number of vector cores of a mixed kernel";
}

bool tdist::isMixedKernel(func::FuncOp function) {
  auto mode = function->getAttrOfType<StringAttr>("mix_mode");
  return mode && mode.getValue() == "mix";
}

VectorCoreDifference::VectorCoreDifference(func::FuncOp function) : function(function) {
  do {
    hasChanged = false;
    visit(function.getBody().front(), /*isConditional=*/false);
  } while (hasChanged);
}

bool VectorCoreDifference::isIn(Operation *op) const {
  const auto differs = [&](Value value) { return contains(value); };
  if (llvm::any_of(op->getOperands(), differs) || llvm::any_of(op->getResults(), differs))
    return true;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::any_of(captured, differs);
}

bool VectorCoreDifference::isInStep(Operation *op) const {
  if (auto condition = dyn_cast<scf::IfOp>(op))
    return !contains(condition.getCondition());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return !contains(loop.getLowerBound()) && !contains(loop.getUpperBound()) &&
           !contains(loop.getStep());
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return !contains(loop.getConditionOp().getCondition());
  return false;
}

bool VectorCoreDifference::isApart(Operation *op) const {
  if (isIn(op))
    return true;
  for (Operation *parent = op->getParentOp(); parent != function; parent = parent->getParentOp())
    if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(parent) && !isInStep(parent))
      return true;
  return false;
}

void VectorCoreDifference::visit(Block &block, bool isConditional) {
  for (Operation &op : block)
    visit(op, isConditional);
}

void VectorCoreDifference::visit(Operation &op, bool isConditional) {
  if (isSubVecId(&op)) {
    add(op.getResult(0));
  } else if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op)) {
    const bool inStep = isInStep(&op) && !isConditional;
    for (Region &region : op.getRegions())
      for (Block &block : region)
        visit(block, !inStep);
    if (inStep)
      carryThrough(op);
    else
      llvm::for_each(op.getResults(), [&](Value result) { add(result); });
  } else if (!op.hasTrait<OpTrait::IsTerminator>()) {
    const bool differs = isIn(&op);
    if (differs)
      llvm::for_each(op.getResults(), [&](Value result) { add(result); });
    if (differs || isConditional)
      for (Value written : writtenOperands(&op))
        if (Value buffer = isa<MemRefType>(written.getType()) ? localBuffer(written) : Value())
          // A buffer of a condition's own is copied with the condition.
          if (differs || buffer.getParentRegion() != op.getParentRegion())
            add(buffer);
  }
}

void VectorCoreDifference::carry(Value from, Value to) {
  if (contains(from))
    add(to);
}

template <class From, class To> void VectorCoreDifference::carryAll(From from, To to) {
  for (auto [source, target] : llvm::zip_equal(from, to))
    carry(source, target);
}

void VectorCoreDifference::carryThrough(Operation &op) {
  if (auto condition = dyn_cast<scf::IfOp>(op)) {
    for (Region *region : {&condition.getThenRegion(), &condition.getElseRegion()})
      if (!region->empty())
        carryAll(region->front().getTerminator()->getOperands(), op.getResults());
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    carryAll(loop.getInitArgs(), loop.getRegionIterArgs());
    carryAll(loop.getYieldedValues(), loop.getRegionIterArgs());
    carryAll(loop.getRegionIterArgs(), loop.getResults());
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    carryAll(loop.getInits(), loop.getBeforeArguments());
    carryAll(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
    carryAll(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    carryAll(loop.getConditionOp().getArgs(), loop.getResults());
  }
}
