//===- VectorCoreDifference.h - What the vector cores have apart ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "tdist/Conversion/ExternCall.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tdist {

/// Which values of a mixed kernel differ between the vector cores, all that depends on
/// sub_vec_id().
class VectorCoreDifference {
public:
  explicit VectorCoreDifference(mlir::func::FuncOp function);

  bool contains(mlir::Value value) const { return values.contains(value); }
  void add(mlir::Value value) { hasChanged |= values.insert(value).second; }

  /// Whether each core needs an op of its own: it uses or makes something that differs. Not asked
  /// of loops and conditions that both go through in step.
  bool isIn(mlir::Operation *op) const;

  /// Whether both cores go through the loop or condition in step.
  bool isInStep(mlir::Operation *op) const;

  /// Whether each core runs `op` for itself: it, or a loop or condition around it, depends on the
  /// core.
  bool isApart(mlir::Operation *op) const;

private:
  void visit(mlir::Block &block, bool isConditional);
  void visit(mlir::Operation &op, bool isConditional);
  void carry(mlir::Value from, mlir::Value to);
  template <class From, class To> void carryAll(From from, To to);
  void carryThrough(mlir::Operation &op);

  mlir::func::FuncOp function;
  llvm::DenseSet<mlir::Value> values;
  bool hasChanged = false;
};

/// Whether `op` asks which vector core of a mixed kernel this is.
bool isSubVecId(mlir::Operation *op);

/// The error of sub_vec_num() in a mixed kernel.
mlir::LogicalResult refuseSubVecNum(const ExternCall &call);

/// Whether the kernel runs on cube and vector cores.
bool isMixedKernel(mlir::func::FuncOp function);

} // namespace tdist
