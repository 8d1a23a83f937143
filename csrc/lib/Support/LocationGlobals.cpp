//===- LocationGlobals.cpp - Places of a kernel as constants in its code --===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/LocationGlobals.h"

#include "tdist/Conversion/SourceLocation.h"

using namespace mlir;

tdist::LocationGlobals::LocationGlobals(ModuleOp module, StringRef placePrefix,
                                        StringRef filePrefix)
    : top(OpBuilder::atBlockBegin(module.getBody())), placePrefix(placePrefix),
      filePrefix(filePrefix) {}

LLVM::GlobalOp tdist::LocationGlobals::of(Location location) {
  FileLineColLoc place = tdist::findKernelLocation(location);
  const StringRef file = place ? place.getFilename().getValue() : "<unknown>";
  const auto line = static_cast<int32_t>(place ? place.getLine() : 0);
  const auto column = static_cast<int32_t>(place ? place.getColumn() : 0);
  LLVM::GlobalOp &global = places[{file, line, column}];
  if (global)
    return global;

  MLIRContext *context = top.getContext();
  const Location unknown = UnknownLoc::get(context);
  LLVM::GlobalOp name = fileName(file);
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type type =
      LLVM::LLVMStructType::getLiteral(context, {pointer, top.getI32Type(), top.getI32Type()});
  global = top.create<LLVM::GlobalOp>(unknown, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                      placePrefix + std::to_string(places.size() - 1),
                                      /*value=*/Attribute());
  OpBuilder body = OpBuilder::atBlockEnd(&global.getInitializerRegion().emplaceBlock());
  Value value = body.create<LLVM::UndefOp>(unknown, type);
  const auto insert = [&](Value field, int64_t position) {
    value = body.create<LLVM::InsertValueOp>(unknown, value, field, position);
  };
  insert(body.create<LLVM::AddressOfOp>(unknown, name), 0);
  insert(body.create<LLVM::ConstantOp>(unknown, body.getI32IntegerAttr(line)), 1);
  insert(body.create<LLVM::ConstantOp>(unknown, body.getI32IntegerAttr(column)), 2);
  body.create<LLVM::ReturnOp>(unknown, value);
  return global;
}

LLVM::GlobalOp tdist::LocationGlobals::fileName(StringRef file) {
  LLVM::GlobalOp &global = files[file];
  if (!global) {
    const std::string text = file.str() + '\0';
    Type type = LLVM::LLVMArrayType::get(top.getI8Type(), text.size());
    global = top.create<LLVM::GlobalOp>(
        UnknownLoc::get(top.getContext()), type, /*isConstant=*/true, LLVM::Linkage::Internal,
        filePrefix + std::to_string(files.size() - 1), top.getStringAttr(text));
  }
  return global;
}
