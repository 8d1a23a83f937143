//===- ExternCall.cpp - A kernel's call of a function outside of it -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/ExternCall.h"
#include "tdist/Conversion/RuntimeSymbols.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace {

template <class AttributeT> AttributeT property(Operation *op, StringRef name) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto value = properties ? properties.getAs<AttributeT>(name) : AttributeT();
  return value ? value : op->getAttrOfType<AttributeT>(name);
}

StringRef stringProperty(Operation *op, StringRef name) {
  auto value = property<StringAttr>(op, name);
  return value ? value.getValue() : StringRef();
}

bool isScalar(Type type) { return type.isIntOrFloat(); }

} // namespace

std::optional<tdist::ExternCall> tdist::ExternCall::of(Operation *op) {
  if (op->getName().getStringRef() != "tt.extern_elementwise")
    return std::nullopt;
  auto pure = property<BoolAttr>(op, "pure");
  return ExternCall{op, stringProperty(op, "libname"), stringProperty(op, "libpath"),
                    stringProperty(op, "symbol"), pure && pure.getValue()};
}

FunctionType tdist::ExternCall::type() const {
  return FunctionType::get(op->getContext(), op->getOperandTypes(), op->getResultTypes());
}

InFlightDiagnostic tdist::ExternCall::error() const {
  return emitError(kernelLocation(op->getLoc()));
}

LogicalResult tdist::ExternCall::checkScalars() const {
  if (op->getNumResults() == 1 && llvm::all_of(op->getOperandTypes(), isScalar) &&
      llvm::all_of(op->getResultTypes(), isScalar))
    return success();
  return error() << "extern function '" << symbol
                 << "' takes and returns scalars, but is called as " << type();
}

LogicalResult tdist::ExternCall::checkRuntimeSymbol() const {
  const RuntimeSymbol *known = findRuntimeSymbol(symbol);
  if (!known)
    return error() << "tdist-opt has no function '" << symbol
                   << "': it and the Python package are of different versions";
  const FunctionType expected = known->functionType(op->getContext());
  if (type() != expected)
    return error() << "'" << symbol << "' is called as " << type() << ", but its type is "
                   << expected;
  return success();
}

bool tdist::isRuntimeCall(Operation *op, StringRef name) {
  const std::optional<ExternCall> call = ExternCall::of(op);
  return call && call->isOurs() && call->symbol == name;
}
