//===- Elements.cpp - What calls on tensors with a text have in common ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

void tdist::forEachElement(OpBuilder &builder, Location location, Value operand,
                           llvm::function_ref<void(OpBuilder &, Value, ValueRange)> body) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return body(builder, operand, {});
  const int64_t rank = type.getRank();
  const auto index = [&](int64_t value) -> Value {
    return builder.create<arith::ConstantIndexOp>(location, value);
  };
  SmallVector<Value> upper;
  for (int64_t size : type.getShape())
    upper.push_back(index(size));
  const SmallVector<Value> lower(rank, index(0));
  const SmallVector<Value> step(rank, index(1));
  scf::buildLoopNest(
      builder, location, lower, upper, step, [&](OpBuilder &inner, Location, ValueRange position) {
        body(inner, inner.create<tensor::ExtractOp>(location, operand, position), position);
      });
}

Value tdist::addressOfText(OpBuilder &builder, Location location, ModuleOp module, StringRef text) {
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  const std::string terminated = text.str() + '\0';
  std::string name;
  for (unsigned number = 0; name.empty() || module.lookupSymbol(name); ++number)
    name = "tdist_text_" + std::to_string(number);
  auto global = top.create<LLVM::GlobalOp>(
      location, LLVM::LLVMArrayType::get(top.getI8Type(), terminated.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name, top.getStringAttr(terminated));
  return builder.create<LLVM::AddressOfOp>(location, global);
}
