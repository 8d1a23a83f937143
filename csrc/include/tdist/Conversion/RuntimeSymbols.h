//===- RuntimeSymbols.h - What kernels may ask of the simulator's runtime -===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tdist {

/// The runtime function that a symbol of library "tdist" stands for.
struct RuntimeSymbol {
  /// What the front end writes, such as `tdist_notify_i32`.
  llvm::StringLiteral name;
  /// Result and operands, one letter each: `i` for i32, `l` for i64 (an address, or a value of a
  /// 64-bit signal).
  llvm::StringLiteral signature;
  /// Set where the result is known while compiling, so that nothing is called.
  std::optional<int64_t> constant = std::nullopt;

  mlir::FunctionType functionType(mlir::MLIRContext *context) const;
};

/// Null when the runtime has no function of that name.
const RuntimeSymbol *findRuntimeSymbol(llvm::StringRef name);

} // namespace tdist
