//===- MemRefFromPointer.h - A memref over memory given by a pointer ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tdist {

/// A memref of `type` over the memory at `pointer`, an `!llvm.ptr`. The layout of `type` must be
/// the identity. A dynamic size reads as the largest number there is: the caller knows no better.
mlir::Value memRefFromPointer(mlir::OpBuilder &builder, mlir::Location location,
                              mlir::MemRefType type, mlir::Value pointer);

} // namespace tdist
