//===- Addresses.h - What the address in an extern call points to ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Value.h"

namespace tdist {

/// The memref that `address`, an i64 made by tt.ptr_to_int, is the address of, with its offset:
/// in the IR, the address is that of the buffer alone. Null when it was made in another way.
mlir::Value pointedTo(mlir::Value address);

/// The memref that `view` lies in: the kernel's argument, or what a pointer was made of.
mlir::Value bufferOf(mlir::Value view);

/// Erases the ops that made `address`, as far as nothing else uses them.
void eraseUnusedAddress(mlir::Value address);

} // namespace tdist
