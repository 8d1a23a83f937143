//===- PlanMemory.cpp - Place all buffers of a kernel in one block --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/MemRefFromPointer.h"
#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_PLANMEMORY
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// A cache line, and the widest vector register.
constexpr int64_t alignment = 64;
/// Programs run on small stacks (64 KiB), which library functions they call must fit on too.
constexpr int64_t largestOnStack = 256;
constexpr int64_t stackBudget = 4096;

/// Bytes of a buffer and of the gap behind it, so that the next one is aligned.
int64_t placedBytes(MemRefType type) {
  const uint64_t elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  return static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(type.getNumElements()) * elementBytes, alignment));
}

class Planner {
public:
  explicit Planner(func::FuncOp function) : function(function) {}

  LogicalResult plan() {
    SmallVector<memref::AllocOp> allocs;
    function.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    for (memref::AllocOp alloc : allocs)
      if (!alloc.getType().hasStaticShape() || !alloc.getType().getLayout().isIdentity())
        return emitError(tdist::kernelLocation(alloc.getLoc()))
               << "a tile of type " << alloc.getType()
               << " has no static shape: not supported on simulated NPUs";
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    int64_t onStack = 0;
    SmallVector<memref::AllocOp> inBlock;
    for (memref::AllocOp alloc : allocs) {
      const int64_t bytes = placedBytes(alloc.getType());
      if (bytes > largestOnStack || onStack + bytes > stackBudget) {
        inBlock.push_back(alloc);
        continue;
      }
      onStack += bytes;
      alloc.replaceAllUsesWith(builder
                                   .create<memref::AllocaOp>(alloc.getLoc(), alloc.getType(),
                                                             builder.getI64IntegerAttr(alignment))
                                   .getMemref());
    }
    if (!inBlock.empty())
      placeInBlock(builder, inBlock);
    for (memref::AllocOp alloc : allocs)
      alloc.erase();
    return success();
  }

private:
  void placeInBlock(OpBuilder &builder, ArrayRef<memref::AllocOp> allocs) {
    int64_t total = 0;
    for (memref::AllocOp alloc : allocs)
      total += placedBytes(alloc.getType());

    const Location location = function.getLoc();
    Type pointerType = LLVM::LLVMPointerType::get(builder.getContext());
    Type i64 = builder.getI64Type();
    const auto constant = [&](int64_t value) -> Value {
      return builder.create<LLVM::ConstantOp>(location, builder.getI64IntegerAttr(value));
    };
    func::FuncOp alloc = declare("tdist_sim_alloc", {i64, i64}, {pointerType});
    alloc.setResultAttr(0, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    Value block =
        builder
            .create<func::CallOp>(location, alloc, ValueRange{constant(alignment), constant(total)})
            .getResult(0);
    int64_t offset = 0;
    for (memref::AllocOp buffer : allocs) {
      Value pointer =
          builder.create<LLVM::GEPOp>(location, pointerType, builder.getI8Type(), block,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
      offset += placedBytes(buffer.getType());
      buffer.replaceAllUsesWith(
          tdist::memRefFromPointer(builder, buffer.getLoc(), buffer.getType(), pointer));
    }
    func::FuncOp free = declare("tdist_sim_free", {pointerType}, {});
    function.walk([&](func::ReturnOp op) {
      OpBuilder(op).create<func::CallOp>(location, free, ValueRange{block});
    });
  }

  func::FuncOp declare(StringRef name, TypeRange arguments, TypeRange results) {
    auto module = function->getParentOfType<ModuleOp>();
    if (auto existing = module.lookupSymbol<func::FuncOp>(name))
      return existing;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto declared = builder.create<func::FuncOp>(function.getLoc(), name,
                                                 builder.getFunctionType(arguments, results));
    declared.setPrivate();
    return declared;
  }

  func::FuncOp function;
};

struct PlanMemory : tdist::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(Planner(function).plan()))
        return signalPassFailure();
  }
};

} // namespace
