//===- LocationGlobals.h - Places of a kernel as constants in its code ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <string>
#include <tuple>

namespace tdist {

/// The constants `tdist_loc` {file, line, column} that calls of the runtime point to, one for each
/// place of the kernel.
class LocationGlobals {
public:
  /// The names of the constants begin with the prefixes, which no other user may have taken.
  LocationGlobals(mlir::ModuleOp module, llvm::StringRef placePrefix, llvm::StringRef filePrefix);

  /// The constant for the place in the user's kernel that `location` stands for.
  mlir::LLVM::GlobalOp of(mlir::Location location);

private:
  mlir::LLVM::GlobalOp fileName(llvm::StringRef file);

  mlir::OpBuilder top;
  std::string placePrefix;
  std::string filePrefix;
  llvm::MapVector<llvm::StringRef, mlir::LLVM::GlobalOp> files;
  llvm::MapVector<std::tuple<llvm::StringRef, int32_t, int32_t>, mlir::LLVM::GlobalOp> places;
};

} // namespace tdist
