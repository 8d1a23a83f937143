//===- CopyToLoops.cpp - memref.copy to loops -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTCOPYTOLOOPS
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

void convert(memref::CopyOp copy) {
  OpBuilder builder(copy);
  const Location location = copy.getLoc();
  Value source = copy.getSource();
  const int64_t rank = cast<MemRefType>(source.getType()).getRank();
  SmallVector<Value> lower, upper, step;
  for (int64_t dim = 0; dim < rank; ++dim) {
    lower.push_back(builder.create<arith::ConstantIndexOp>(location, 0));
    upper.push_back(builder.createOrFold<memref::DimOp>(location, source, dim));
    step.push_back(builder.create<arith::ConstantIndexOp>(location, 1));
  }
  scf::buildLoopNest(builder, location, lower, upper, step,
                     [&](OpBuilder &body, Location, ValueRange position) {
                       Value element = body.create<memref::LoadOp>(location, source, position);
                       body.create<memref::StoreOp>(location, element, copy.getTarget(), position);
                     });
  copy.erase();
}

struct ConvertCopyToLoops : tdist::impl::ConvertCopyToLoopsBase<ConvertCopyToLoops> {
  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    getOperation().walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (memref::CopyOp copy : copies) {
      if (!isa<MemRefType>(copy.getSource().getType())) {
        copy.emitError("a copy of an unranked memref is not supported");
        return signalPassFailure();
      }
      convert(copy);
    }
  }
};

} // namespace
