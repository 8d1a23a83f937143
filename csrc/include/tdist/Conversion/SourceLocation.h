//===- SourceLocation.h - Where in the user's kernel an op comes from -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Location.h"

namespace tdist {

/// The place in the user's kernel that `location` stands for. An inlined call counts as the line of
/// the outermost caller, a fused location as its first known part. Null when nothing is known.
mlir::FileLineColLoc findKernelLocation(mlir::Location location);

/// The same for diagnostics: `location` itself where nothing better is known.
mlir::Location kernelLocation(mlir::Location location);

} // namespace tdist
