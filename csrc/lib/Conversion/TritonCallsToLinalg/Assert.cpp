//===- Assert.cpp - tl.device_assert as an end of the program -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace {

/// An extern call as the front end writes it: the pass that makes calls of those adds the place in
/// the kernel's source.
void reportFailure(OpBuilder &builder, Location location, Value text) {
  OperationState call(location, "tt.extern_elementwise");
  Value address = builder.create<LLVM::PtrToIntOp>(location, builder.getI64Type(), text);
  call.addOperands(address);
  call.addTypes(builder.getI32Type());
  call.addAttribute("libname", builder.getStringAttr("tdist"));
  call.addAttribute("libpath", builder.getStringAttr(""));
  call.addAttribute("symbol", builder.getStringAttr("tdist_assert_failed"));
  call.addAttribute("pure", builder.getBoolAttr(false));
  builder.create(call);
}

} // namespace

void tdist::convertAssert(func::CallOp call) {
  auto module = call->getParentOfType<ModuleOp>();
  auto function = module.lookupSymbol<func::FuncOp>(call.getCallee());
  auto text = function ? function->getAttrOfType<StringAttr>("msg") : StringAttr();
  if (!text || call.getNumResults() != 0 || call.getNumOperands() != 1 ||
      !getElementTypeOrSelf(call.getOperand(0).getType()).isInteger(1))
    return;
  const Location location = call.getLoc();
  OpBuilder builder(call);
  Value address = addressOfText(builder, location, module, text.getValue());
  forEachElement(builder, location, call.getOperand(0),
                 [&](OpBuilder &body, Value holds, ValueRange) {
                   Value one = body.create<arith::ConstantIntOp>(location, 1, 1);
                   Value fails = body.create<arith::XOrIOp>(location, holds, one);
                   body.create<scf::IfOp>(location, fails, [&](OpBuilder &then, Location) {
                     reportFailure(then, location, address);
                     then.create<scf::YieldOp>(location);
                   });
                 });
  call.erase();
}
