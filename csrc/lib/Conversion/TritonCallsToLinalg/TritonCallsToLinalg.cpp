//===- TritonCallsToLinalg.cpp - Functions that the adapter leaves to a library ===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTTRITONCALLSTOLINALG
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// Fails on an op that would stay and holds a region: nothing says what is right inside of it.
LogicalResult convertForeign(Operation *op) {
  const StringRef name = op->getName().getStringRef();
  if (name == "hfusion.histogram")
    tdist::convertHistogram(op);
  else if (name == "hfusion.elemwise_binary" && succeeded(tdist::convertElementwiseBinary(op)))
    return success();
  else if (op->getNumRegions() != 0)
    return emitError(tdist::kernelLocation(op->getLoc()))
           << "operation '" << name << "' is not supported on simulated NPUs";
  return success();
}

struct ConvertTritonCallsToLinalg
    : tdist::impl::ConvertTritonCallsToLinalgBase<ConvertTritonCallsToLinalg> {
  using ConvertTritonCallsToLinalgBase::ConvertTritonCallsToLinalgBase;

  void runOnOperation() override {
    SmallVector<func::CallOp> calls;
    SmallVector<Operation *> foreign;
    getOperation().walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        calls.push_back(call);
      else if (op->getName().getDialectNamespace() == "hfusion")
        foreign.push_back(op);
    });
    for (func::CallOp call : calls) {
      if (call.getCallee().starts_with("__hmf_"))
        tdist::convertDeviceMath(call);
      else if (call.getCallee().starts_with("triton_print"))
        printing ? tdist::convertPrint(call) : call.erase();
      else if (call.getCallee().starts_with("triton_assert"))
        tdist::convertAssert(call);
      else if (call.getCallee().starts_with("triton_"))
        tdist::convertTensorCall(call);
    }
    for (Operation *op : foreign)
      if (failed(convertForeign(op)))
        return signalPassFailure();
    // A declaration left over would keep tensors in the signatures of the module.
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function.isExternal() && SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        function.erase();
  }
};

} // namespace
