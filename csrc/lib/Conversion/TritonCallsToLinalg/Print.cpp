//===- Print.cpp - tl.device_print as lines on standard error -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace {

constexpr int32_t standardError = 2;

/// Prints one operand of a call, a line for each element, as Triton does on a GPU.
class Printer {
public:
  Printer(func::CallOp call, StringRef prefix, bool hex)
      : call(call), prefix(prefix), hex(hex), location(call.getLoc()), builder(call),
        module(call->getParentOfType<ModuleOp>()) {}

  void print(Value operand) {
    tdist::forEachElement(builder, location, operand,
                          [&](OpBuilder &body, Value element, ValueRange position) {
                            printElement(body, element, position);
                          });
  }

private:
  void printElement(OpBuilder &body, Value element, ValueRange position) {
    std::string format = "pid (%d, %d, %d)";
    auto kernel = call->getParentOfType<func::FuncOp>();
    SmallVector<Value> operands(kernel.getArguments().take_back(3));
    if (!position.empty()) {
      format += " idx (";
      for (auto [dim, at] : llvm::enumerate(position)) {
        format += dim == 0 ? "%lld" : ", %lld";
        operands.push_back(body.create<arith::IndexCastOp>(location, body.getI64Type(), at));
      }
      format += ")";
    }
    // The adapter's prefix begins with a space. A percent sign in it is no conversion.
    for (char letter : prefix)
      format += letter == '%' ? "%%" : std::string(1, letter);
    if (isa<FloatType>(element.getType())) {
      format += "%f\n";
      operands.push_back(widenFloat(body, element));
    } else {
      format += hex ? "0x%llx\n" : "%lld\n";
      operands.push_back(widenInteger(body, element));
    }
    operands.insert(operands.begin(),
                    {descriptor(body), tdist::addressOfText(body, location, module, format)});
    body.create<LLVM::CallOp>(location, dprintf(), operands);
  }

  Value widenFloat(OpBuilder &body, Value value) {
    Type wide = body.getF64Type();
    return value.getType() == wide ? value
                                   : body.create<arith::ExtFOp>(location, wide, value).getResult();
  }

  Value widenInteger(OpBuilder &body, Value value) {
    Type wide = body.getI64Type();
    if (value.getType() == wide)
      return value;
    if (hex || value.getType().isInteger(1))
      return body.create<arith::ExtUIOp>(location, wide, value);
    return body.create<arith::ExtSIOp>(location, wide, value);
  }

  Value descriptor(OpBuilder &body) {
    return body.create<LLVM::ConstantOp>(location, body.getI32IntegerAttr(standardError));
  }

  /// The C library's: one write a line, so that lines of programs do not mix.
  LLVM::LLVMFuncOp dprintf() {
    if (auto existing = module.lookupSymbol<LLVM::LLVMFuncOp>("dprintf"))
      return existing;
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    Type pointer = LLVM::LLVMPointerType::get(top.getContext());
    Type i32 = top.getI32Type();
    return top.create<LLVM::LLVMFuncOp>(
        location, "dprintf", LLVM::LLVMFunctionType::get(i32, {i32, pointer}, /*isVarArg=*/true));
  }

  func::CallOp call;
  StringRef prefix;
  bool hex;
  Location location;
  OpBuilder builder;
  ModuleOp module;
};

bool isPrintable(Type type) { return getElementTypeOrSelf(type).isIntOrFloat(); }

} // namespace

void tdist::convertPrint(func::CallOp call) {
  auto function = call->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(call.getCallee());
  auto prefix = function ? function->getAttrOfType<StringAttr>("prefix") : StringAttr();
  auto hex = function ? function->getAttrOfType<BoolAttr>("hex") : BoolAttr();
  if (!prefix || call.getNumResults() != 0 || !llvm::all_of(call.getOperandTypes(), isPrintable) ||
      call->getParentOfType<func::FuncOp>().getNumArguments() < 3)
    return;
  for (Value operand : call.getOperands())
    Printer(call, prefix.getValue(), hex && hex.getValue()).print(operand);
  call.erase();
}
