//===- Addresses.cpp - What the address in an extern call points to -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Addresses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

Value tdist::pointedTo(Value address) {
  while (auto cast = address.getDefiningOp<arith::IndexCastOp>())
    address = cast.getIn();
  auto extract = address.getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>();
  return extract ? extract.getSource() : Value();
}

Value tdist::bufferOf(Value view) {
  while (auto cast = view.getDefiningOp<memref::ReinterpretCastOp>())
    view = cast.getSource();
  return view;
}

void tdist::eraseUnusedAddress(Value address) {
  Operation *op = address.getDefiningOp();
  if (!op || !op->use_empty() ||
      !isa<arith::IndexCastOp, memref::ExtractAlignedPointerAsIndexOp>(op))
    return;
  Value source = op->getOperand(0);
  op->erase();
  eraseUnusedAddress(source);
}
