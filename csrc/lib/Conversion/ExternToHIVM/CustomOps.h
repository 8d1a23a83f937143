//===- CustomOps.h - Ops of HIVM, a dialect that is not registered here ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/IR/Builders.h"

#include <optional>

namespace tdist {

/// Which cores of an AI core run an op.
enum class Cores { vector, cubeAndVector };

/// A call of a device function, as AscendNPU-IR knows it.
struct DeviceCall {
  /// What the device library calls it, without the prefix `_mlir_ciface_`.
  std::string symbol;
  llvm::SmallVector<mlir::Value> operands = {};
  /// Null for a function that returns nothing.
  mlir::Type result = {};
  Cores cores = Cores::vector;
  /// Whether it may be removed, merged or moved.
  bool isPure = false;
  /// Where a function that is not aclshmem's comes from; may be empty.
  llvm::StringRef library = {};
  llvm::StringRef path = {};
};

/// A hivm.hir.custom.
mlir::Operation *createCustomOp(mlir::OpBuilder &builder, mlir::Location location,
                                const DeviceCall &call);

/// Lets the core wait until all its pipes have done what they were given.
void createPipeBarrier(mlir::OpBuilder &builder, mlir::Location location);

/// Lets the cube core and both vector cores of a mixed kernel wait until all of them are here.
void createCoreMeeting(mlir::OpBuilder &builder, mlir::Location location);

/// The flag that `op` sets or waits for, if it is one of those.
std::optional<int64_t> takenFlag(mlir::Operation *op);

/// Which of the vector cores of an AI core this is, i64.
mlir::Value createSubBlockIndex(mlir::OpBuilder &builder, mlir::Location location);

/// What the names of aclshmem's functions call a type of elements; empty for one that it lacks.
llvm::StringRef elementName(mlir::Type type);

} // namespace tdist
