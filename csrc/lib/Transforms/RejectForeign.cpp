//===- RejectForeign.cpp - Fail on what no earlier pass knows -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace tdist {
#define GEN_PASS_DEF_REJECTFOREIGN
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// Of the runtime, or of a library of the user; the rest is for a library on the NPU.
bool isOurs(func::FuncOp function) {
  return function.getName().starts_with("tdist_sim_") || function->hasAttr("tdist.extern");
}

/// Buffers that loops and conditions pass on are tensors later in the pipeline: a pointer among
/// them would be taken for one, and the memory behind it copied.
bool passesPointerOn(Operation *op) {
  return isa<RegionBranchOpInterface, arith::SelectOp>(op) &&
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
}

struct RejectForeign : tdist::impl::RejectForeignBase<RejectForeign> {
  void runOnOperation() override {
    bool failed = false;
    const auto reject = [&](Operation *op, StringRef kind, StringRef name) {
      emitError(tdist::kernelLocation(op->getLoc()))
          << kind << " '" << name << "' is not supported on simulated NPUs";
      failed = true;
    };
    SymbolTableCollection symbols;
    getOperation().walk([&](Operation *op) {
      if (!op->isRegistered())
        return reject(op, "operation", op->getName().getStringRef());
      if (passesPointerOn(op)) {
        emitError(tdist::kernelLocation(op->getLoc()))
            << "a loop or a condition chooses a pointer, which is not supported on simulated NPUs: "
               "choose the offset";
        failed = true;
        return;
      }
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return;
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (callee && callee.isExternal() && !isOurs(callee))
        reject(op, "function", call.getCallee());
    });
    if (failed)
      signalPassFailure();
  }
};

} // namespace
