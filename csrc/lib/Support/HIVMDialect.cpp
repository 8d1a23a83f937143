//===- HIVMDialect.cpp - As much of AscendNPU-IR's dialect as is needed ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/HIVMDialect.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

struct tdist::detail::VerbatimAttrStorage : AttributeStorage {
  using KeyTy = StringRef;

  explicit VerbatimAttrStorage(StringRef text) : text(text) {}
  bool operator==(const KeyTy &key) const { return key == text; }
  static VerbatimAttrStorage *construct(AttributeStorageAllocator &allocator, const KeyTy &key) {
    return new (allocator.allocate<VerbatimAttrStorage>())
        VerbatimAttrStorage(allocator.copyInto(key));
  }

  StringRef text;
};

MLIR_DEFINE_EXPLICIT_TYPE_ID(tdist::HIVMDialect)
MLIR_DEFINE_EXPLICIT_TYPE_ID(tdist::VerbatimAttr)

tdist::HIVMDialect::HIVMDialect(MLIRContext *context)
    : Dialect(getDialectNamespace(), context, TypeID::get<HIVMDialect>()) {
  // The analyzer takes a temporary in MLIR's own header for one that outlives its function.
#ifndef __clang_analyzer__
  addAttributes<VerbatimAttr>();
#endif
  allowUnknownOperations();
}

Attribute tdist::HIVMDialect::parseAttribute(DialectAsmParser &parser, Type /*type*/) const {
  return VerbatimAttr::get(getContext(), parser.getFullSymbolSpec());
}

void tdist::HIVMDialect::printAttribute(Attribute attribute, DialectAsmPrinter &printer) const {
  printer << cast<VerbatimAttr>(attribute).text();
}

tdist::VerbatimAttr tdist::VerbatimAttr::get(MLIRContext *context, StringRef text) {
  return Base::get(context, text);
}

StringRef tdist::VerbatimAttr::text() const { return getImpl()->text; }
