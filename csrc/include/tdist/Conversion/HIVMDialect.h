//===- HIVMDialect.h - As much of AscendNPU-IR's dialect as is needed -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Dialect.h"

namespace tdist {

namespace detail {
struct VerbatimAttrStorage;
} // namespace detail

/// The dialect `hivm`, to read and write what AscendNPU-IR's compiler reads and writes: operations
/// in generic form and attributes as text, memory spaces among them.
class HIVMDialect : public mlir::Dialect {
public:
  explicit HIVMDialect(mlir::MLIRContext *context);
  static constexpr llvm::StringLiteral getDialectNamespace() { return "hivm"; }

  mlir::Attribute parseAttribute(mlir::DialectAsmParser &parser, mlir::Type type) const override;
  void printAttribute(mlir::Attribute attribute, mlir::DialectAsmPrinter &printer) const override;
};

/// An attribute of the dialect, such as `#hivm.pipe<PIPE_S>`.
class VerbatimAttr
    : public mlir::Attribute::AttrBase<VerbatimAttr, mlir::Attribute, detail::VerbatimAttrStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "hivm.verbatim";

  static VerbatimAttr get(mlir::MLIRContext *context, llvm::StringRef text);
  /// What follows `#hivm.`.
  llvm::StringRef text() const;
};

} // namespace tdist

MLIR_DECLARE_EXPLICIT_TYPE_ID(tdist::HIVMDialect)
MLIR_DECLARE_EXPLICIT_TYPE_ID(tdist::VerbatimAttr)
