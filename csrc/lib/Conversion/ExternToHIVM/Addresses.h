//===- Addresses.h - What the address in an extern call points to ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Builders.h"

namespace tdist {

/// The memref that `address`, an i64 made by tt.ptr_to_int, is the address of, with its offset:
/// in the IR, the address is that of the buffer alone. Null when it was made in another way.
mlir::Value pointedTo(mlir::Value address);

/// The memref that `view` lies in: the kernel's argument, or what a pointer was made of.
mlir::Value bufferOf(mlir::Value view);

/// The address of `view` in bytes, offset and all, as an i64. Null when its layout is not one that
/// the front end makes.
mlir::Value addressOf(mlir::OpBuilder &builder, mlir::Location location, mlir::Value view);

/// Erases the ops that made `address`, as far as nothing else uses them.
void eraseUnusedAddress(mlir::Value address);

} // namespace tdist
