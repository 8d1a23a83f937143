//===- AddViewOffsets.cpp - Make the address of a view include its offset -===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_ADDVIEWOFFSETS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// Bytes that one element takes in memory: Triton stores an i1 as a byte.
int64_t elementBytes(MemRefType type) {
  return static_cast<int64_t>(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

/// The op is moved to the buffer of the view, so a second run of the pass finds an offset of 0.
void addOffset(memref::ExtractAlignedPointerAsIndexOp address, MemRefType type) {
  OpBuilder builder(address);
  const Location location = address.getLoc();
  auto metadata = builder.create<memref::ExtractStridedMetadataOp>(location, address.getSource());
  Value base =
      builder.create<memref::ExtractAlignedPointerAsIndexOp>(location, metadata.getBaseBuffer());
  // A view of a view has one offset, from the buffer: its type or its descriptor says which.
  const int64_t known = cast<StridedLayoutAttr>(type.getLayout()).getOffset();
  const int64_t size = elementBytes(type);
  Value bytes;
  if (ShapedType::isDynamic(known))
    bytes = builder.create<arith::MulIOp>(location, metadata.getOffset(),
                                          builder.create<arith::ConstantIndexOp>(location, size));
  else
    bytes = builder.create<arith::ConstantIndexOp>(location, known * size);
  address.replaceAllUsesWith(builder.create<arith::AddIOp>(location, base, bytes).getResult());
  address.erase();
}

struct AddViewOffsets : tdist::impl::AddViewOffsetsBase<AddViewOffsets> {
  void runOnOperation() override {
    SmallVector<memref::ExtractAlignedPointerAsIndexOp> addresses;
    getOperation().walk(
        [&](memref::ExtractAlignedPointerAsIndexOp op) { addresses.push_back(op); });
    for (memref::ExtractAlignedPointerAsIndexOp address : addresses) {
      auto type = dyn_cast<MemRefType>(address.getSource().getType());
      if (!type) {
        address.emitError("the address of an unranked memref is not supported");
        return signalPassFailure();
      }
      auto layout = dyn_cast<StridedLayoutAttr>(type.getLayout());
      if (layout && layout.getOffset() != 0) {
        addOffset(address, type);
      } else if (!layout && !type.getLayout().isIdentity()) {
        address.emitError() << "the address of a memref with layout " << type.getLayout()
                            << " is not supported";
        return signalPassFailure();
      }
    }
  }
};

} // namespace
