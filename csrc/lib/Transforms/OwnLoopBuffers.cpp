//===- OwnLoopBuffers.cpp - A place of its own for each carried buffer ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace tdist {
#define GEN_PASS_DEF_OWNLOOPBUFFERS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// The loop's argument through which a buffer goes from one iteration to the next.
struct Carried {
  OpOperand *init;
  BlockArgument argument;
  OpOperand *yielded;
};

SmallVector<Carried> carriedBuffers(LoopLikeOpInterface loop) {
  SmallVector<Carried> carried;
  auto yielded = loop.getYieldedValuesMutable();
  if (!yielded)
    return carried;
  for (auto [init, argument, value] :
       llvm::zip_equal(loop.getInitsMutable(), loop.getRegionIterArgs(), *yielded))
    if (isa<MemRefType>(argument.getType()) && value.get() != argument)
      carried.push_back({&init, argument, &value});
  return carried;
}

/// Whether `value` is certainly (a view of) memory that the loop's body allocates, so that writing
/// the buffer of another argument cannot change it.
bool isAllocatedIn(Value value, Operation *loop) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  return alloc && loop->isProperAncestor(alloc);
}

Value allocate(OpBuilder &builder, Location location, Value like) {
  auto type = cast<MemRefType>(like.getType());
  return builder.create<memref::AllocOp>(location,
                                         MemRefType::get(type.getShape(), type.getElementType()));
}

Value castTo(OpBuilder &builder, Location location, Type type, Value value) {
  return value.getType() == type ? value : builder.create<memref::CastOp>(location, type, value);
}

LogicalResult ownBuffers(LoopLikeOpInterface loop) {
  SmallVector<Carried> carried = carriedBuffers(loop);
  if (carried.empty())
    return success();
  const Location location = loop.getLoc();
  for (const Carried &buffer : carried)
    if (!cast<MemRefType>(buffer.argument.getType()).hasStaticShape())
      return loop.emitError("a loop carries a tensor of dynamic shape: not supported");

  OpBuilder builder(loop);
  SmallVector<Value> homes;
  for (const Carried &buffer : carried) {
    Value home = allocate(builder, location, buffer.argument);
    builder.create<memref::CopyOp>(location, buffer.init->get(), home);
    buffer.init->set(castTo(builder, location, buffer.argument.getType(), home));
    homes.push_back(home);
  }

  // All values are read before the first buffer is written: a body may yield them crosswise.
  builder.setInsertionPoint(carried.front().yielded->getOwner());
  SmallVector<Value> values;
  for (const Carried &buffer : carried) {
    Value value = buffer.yielded->get();
    if (!isAllocatedIn(value, loop)) {
      Value saved = allocate(builder, location, buffer.argument);
      builder.create<memref::CopyOp>(location, value, saved);
      value = saved;
    }
    values.push_back(value);
  }
  for (auto [buffer, home, value] : llvm::zip_equal(carried, homes, values)) {
    builder.create<memref::CopyOp>(location, value, home);
    buffer.yielded->set(castTo(builder, location, buffer.argument.getType(), home));
  }
  return success();
}

struct OwnLoopBuffers : tdist::impl::OwnLoopBuffersBase<OwnLoopBuffers> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](LoopLikeOpInterface loop) {
      return failed(ownBuffers(loop)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
