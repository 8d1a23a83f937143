//===- Calls.h - Functions that the adapter leaves to a library -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {

/// Replaces a call of a scalar function of the NPU's math library (`__hmf_tanhf`, ...) by ops of
/// the math and arith dialects. Leaves alone what it does not know.
void convertDeviceMath(mlir::func::CallOp call);

/// Replaces a call such as `@triton_cumsum_0(tensor, dim, reverse)` by loops. Leaves alone what it
/// does not know.
void convertTensorCall(mlir::func::CallOp call);

/// Replaces a call of `@triton_print_0`, whose text is on its declaration, by calls of the C
/// library. Leaves alone what it cannot print.
void convertPrint(mlir::func::CallOp call);

/// Replaces a call of `@triton_assert_0`, whose text is on its declaration, by a call of the
/// runtime for each condition that does not hold. Leaves alone what has no text.
void convertAssert(mlir::func::CallOp call);

/// Runs `body` on `operand`, or on each element of it where it is a tensor, with the element's
/// position.
void forEachElement(
    mlir::OpBuilder &builder, mlir::Location location, mlir::Value operand,
    llvm::function_ref<void(mlir::OpBuilder &, mlir::Value, mlir::ValueRange)> body);

/// The address of `text` in the compiled kernel, with a zero at its end.
mlir::Value addressOfText(mlir::OpBuilder &builder, mlir::Location location, mlir::ModuleOp module,
                          llvm::StringRef text);

/// Replaces `hfusion.histogram`, an op that is not registered here, by a loop.
void convertHistogram(mlir::Operation *op);

/// Replaces `hfusion.elemwise_binary` by the function that it names, for those that upstream has.
/// Fails, without a message, and leaves the op alone otherwise.
mlir::LogicalResult convertElementwiseBinary(mlir::Operation *op);

} // namespace tdist
