//===- RejectForeign.cpp - Fail on what no earlier pass knows -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_REJECTFOREIGN
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

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
      // Functions that the adapter leaves to a device library; ours have names of their own.
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return;
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (callee && callee.isExternal() && call.getCallee().starts_with("triton_"))
        reject(op, "function", call.getCallee());
    });
    if (failed)
      signalPassFailure();
  }
};

} // namespace
