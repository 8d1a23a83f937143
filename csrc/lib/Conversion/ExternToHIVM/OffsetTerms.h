//===- OffsetTerms.h - Which views an offset of symm_at reaches -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"

#include <optional>

namespace tdist {

using Views = llvm::SmallVector<mlir::memref::ReinterpretCastOp>;

/// The views whose offset is `term` plus something that does not depend on it, where all that
/// depends on `term` is such an offset. Then 0 can take its place, and a pointer that already
/// points that far the place of their buffers. Empty when it is used in any other way.
std::optional<Views> viewsMovedBy(mlir::Value term, mlir::func::FuncOp function);

/// What the uses of a value that is always 0 come to.
struct ZeroUses {
  /// Views whose offset depends on it, where it is known before the view is made.
  Views views;
  /// Whether anything else depends on it.
  bool others = false;
};

ZeroUses usesOfZero(mlir::Value zero, const mlir::DominanceInfo &dominance);

} // namespace tdist
