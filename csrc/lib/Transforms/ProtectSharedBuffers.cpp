//===- ProtectSharedBuffers.cpp - Tensors whose buffer has other readers --===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace tdist {
#define GEN_PASS_DEF_PROTECTSHAREDBUFFERS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// Whether `use` does no more than put a value into the buffer.
bool onlyWrites(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return &copy.getTargetMutable() == &use;
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return &store.getMemrefMutable() == &use;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return &fill.getOutputsMutable()[0] == &use;
  return false;
}

bool isRead(Value buffer) {
  return llvm::any_of(buffer.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    if (isa<bufferization::ToTensorOp>(op) || onlyWrites(use))
      return false;
    if (isa<ViewLikeOpInterface>(op))
      return llvm::any_of(op->getResults(), isRead);
    return true;
  });
}

bool hasOneTensor(Value buffer) {
  return llvm::count_if(buffer.getUsers(), llvm::IsaPred<bufferization::ToTensorOp>) == 1;
}

struct ProtectSharedBuffers : tdist::impl::ProtectSharedBuffersBase<ProtectSharedBuffers> {
  void runOnOperation() override {
    getOperation().walk([](bufferization::ToTensorOp tensor) {
      if (tensor.getWritable() && (isRead(tensor.getMemref()) || !hasOneTensor(tensor.getMemref())))
        tensor.setWritable(false);
    });
  }
};

} // namespace
