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

Value tdist::addressOf(OpBuilder &builder, Location location, Value view) {
  auto type = dyn_cast<MemRefType>(view.getType());
  if (!type)
    return {};
  Value address = builder.create<arith::IndexCastOp>(
      location, builder.getI64Type(),
      builder.create<memref::ExtractAlignedPointerAsIndexOp>(location, bufferOf(view)));
  auto made = view.getDefiningOp<memref::ReinterpretCastOp>();
  if (!made)
    return address;
  // An offset is counted from the buffer, also where a view is made of a view.
  const OpFoldResult offset = made.getMixedOffsets().front();
  const auto size = static_cast<int64_t>(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  Value bytes;
  if (auto known = dyn_cast<Attribute>(offset))
    bytes = builder.create<arith::ConstantIntOp>(location, cast<IntegerAttr>(known).getInt() * size,
                                                 64);
  else
    bytes = builder.create<arith::MulIOp>(
        location,
        builder.create<arith::IndexCastOp>(location, builder.getI64Type(), cast<Value>(offset)),
        builder.create<arith::ConstantIntOp>(location, size, 64));
  return builder.create<arith::AddIOp>(location, address, bytes);
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
