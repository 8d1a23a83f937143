//===- ExternCall.h - A kernel's call of a function outside of it ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace tdist {

/// What the front end writes on a tt.extern_elementwise, an op that is not registered here.
struct ExternCall {
  mlir::Operation *op;
  llvm::StringRef library;
  llvm::StringRef path;
  llvm::StringRef symbol;
  /// Whether the front end allows to remove, merge or move it.
  bool isPure;

  /// Null for every other op.
  static std::optional<ExternCall> of(mlir::Operation *op);

  /// Whether it is one of ours, and not of a library of the user.
  bool isOurs() const { return library == "tdist"; }
  mlir::FunctionType type() const;
  /// An error at the line of the kernel.
  mlir::InFlightDiagnostic error() const;
  /// One result and scalars only, as the stock compiler passes them on.
  mlir::LogicalResult checkScalars() const;
  /// For one of ours: a symbol that is known, called as its type says.
  mlir::LogicalResult checkRuntimeSymbol() const;
};

/// Whether `op` calls the symbol `name` of ours.
bool isRuntimeCall(mlir::Operation *op, llvm::StringRef name);

} // namespace tdist
