//===- FuseElementwise.cpp - Merge elementwise ops on tensors -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tdist {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// Contractions have a lowering of their own.
bool isContraction(linalg::LinalgOp op) {
  return isa<linalg::MatmulOp, linalg::BatchMatmulOp>(op.getOperation());
}

/// MLIR's own generalization leaves linalg.map out.
void generalizeMap(IRRewriter &rewriter, linalg::MapOp op) {
  const AffineMap identity =
      rewriter.getMultiDimIdentityMap(cast<ShapedType>(op.getInit().getType()).getRank());
  const SmallVector<AffineMap> maps(op.getInputs().size() + 1, identity);
  auto generic =
      rewriter.create<linalg::GenericOp>(op.getLoc(), op->getResultTypes(), op.getInputs(),
                                         op.getInit(), maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getMapper(), generic.getRegion(), generic.getRegion().begin());
  generic.getBody()->addArgument(getElementTypeOrSelf(op.getInit().getType()), op.getLoc());
  rewriter.replaceOp(op, generic.getResults());
}

LogicalResult generalize(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> named;
  function.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op.getOperation()) && !isContraction(op) &&
        op.hasPureTensorSemantics())
      named.push_back(op);
  });
  IRRewriter rewriter(function.getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (auto map = dyn_cast<linalg::MapOp>(op.getOperation()))
      generalizeMap(rewriter, map);
    else if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitError("cannot be written as linalg.generic");
  }
  return success();
}

/// A producer that reads no tensor (a constant, a range) is cheaper to make again than to read.
bool shouldFuse(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  if (producer->hasOneUse())
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(producer);
  return generic && llvm::none_of(generic.getDpsInputs(),
                                  [](Value input) { return isa<ShapedType>(input.getType()); });
}

/// Lets LLVM vectorize sums and products: their order is free.
void relaxReductions(func::FuncOp function) {
  function.walk([](linalg::GenericOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    for (Operation &inner : *op.getBody())
      if (isa<arith::AddFOp, arith::MulFOp>(inner)) {
        auto math = cast<arith::ArithFastMathInterface>(inner);
        inner.setAttr(
            math.getFastMathAttrName(),
            arith::FastMathFlagsAttr::get(op.getContext(), arith::FastMathFlags::reassoc));
      }
  });
}

struct FuseElementwise : tdist::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    if (failed(generalize(getOperation())))
      return signalPassFailure();
    // Before fusion, so that only the reduction itself is reordered.
    relaxReductions(getOperation());
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateConstantFoldLinalgOperations(patterns, shouldFuse);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
    GreedyRewriteConfig config;
    config.useTopDownTraversal = true;
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
