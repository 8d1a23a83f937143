//===- GiveTurnsInLoops.cpp - Loops let other programs run ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/LocationGlobals.h"
#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_GIVETURNSINLOOPS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// How a loop gives turns: the runtime's function, after how many iterations it is called, and
/// whether it is told which loop it is.
struct Manner {
  StringLiteral function;
  int32_t iterations;
  bool namesLoop;
};
// A loop that waits by itself must not keep others from running; one that computes may.
constexpr Manner waiting{"tdist_sim_yield", 16, true};
constexpr Manner computing{"tdist_sim_take_turns", 256, false};

/// Whether something in the loop depends on memory that another program may change: a loop without
/// it cannot wait for anyone.
bool looksAtMemory(Operation *loop) {
  return loop
      ->walk([](Operation *op) {
        const bool isAtomic = isa<linalg::GenericOp>(op) && op->hasAttr("GenericAtomicRMW");
        return isAtomic || isa<memref::LoadOp, memref::CopyOp, func::CallOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

struct GiveTurnsInLoops : tdist::impl::GiveTurnsInLoopsBase<GiveTurnsInLoops> {
  void runOnOperation() override {
    tdist::LocationGlobals places(getOperation(), "tdist_loop_loc_", "tdist_loop_file_");
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<scf::WhileOp> whiles;
      SmallVector<scf::ForOp> fors;
      function.walk([&](scf::WhileOp loop) { whiles.push_back(loop); });
      function.walk([&](scf::ForOp loop) { fors.push_back(loop); });
      for (scf::WhileOp loop : whiles)
        giveTurns(function, loop, loop.getAfterBody(), looksAtMemory(loop) ? waiting : computing,
                  places);
      for (scf::ForOp loop : fors)
        if (looksAtMemory(loop))
          giveTurns(function, loop, loop.getBody(), computing, places);
    }
  }

  /// Counts down at the end of each iteration, in memory that becomes a register; the call is made
  /// when the count is zero.
  void giveTurns(func::FuncOp function, Operation *loop, Block *body, const Manner &manner,
                 tdist::LocationGlobals &places) {
    const Location location = body->getTerminator()->getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    const auto constant = [&](int32_t value) -> Value {
      return builder.create<arith::ConstantOp>(location, builder.getI32IntegerAttr(value));
    };
    Value counter =
        builder.create<memref::AllocaOp>(location, MemRefType::get({}, builder.getI32Type()));
    builder.create<memref::StoreOp>(location, constant(manner.iterations), counter);

    builder.setInsertionPoint(body->getTerminator());
    Value left = builder.create<arith::SubIOp>(
        location, builder.create<memref::LoadOp>(location, counter), constant(1));
    Value isTime =
        builder.create<arith::CmpIOp>(location, arith::CmpIPredicate::eq, left, constant(0));
    auto next = builder.create<scf::IfOp>(
        location, isTime,
        [&](OpBuilder &then, Location) {
          SmallVector<Value> operands;
          if (manner.namesLoop)
            operands.push_back(then.create<LLVM::AddressOfOp>(location, places.of(loop->getLoc())));
          then.create<func::CallOp>(location, declare(manner.function, operands), operands);
          Value again =
              then.create<arith::ConstantOp>(location, then.getI32IntegerAttr(manner.iterations));
          then.create<scf::YieldOp>(location, again);
        },
        [&](OpBuilder &otherwise, Location) { otherwise.create<scf::YieldOp>(location, left); });
    builder.create<memref::StoreOp>(location, next.getResult(0), counter);
  }

  func::FuncOp declare(StringRef name, ValueRange operands) {
    if (auto existing = getOperation().lookupSymbol<func::FuncOp>(name))
      return existing;
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto function = builder.create<func::FuncOp>(getOperation().getLoc(), name,
                                                 builder.getFunctionType(operands.getTypes(), {}));
    function.setPrivate();
    return function;
  }
};

} // namespace
