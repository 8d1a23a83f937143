//===- AddKernelEntry.cpp - The function that the runtime calls -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/MemRefFromPointer.h"
#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_ADDKERNELENTRY
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

constexpr StringLiteral entryName = "tdist_kernel_entry";
/// num_programs x, y, z and program_id x, y, z close the adapter's list of arguments.
constexpr unsigned programArguments = 6;

/// Builds `void tdist_kernel_entry(const uint64_t *args, const int32_t *grid, const int32_t *pid)`.
class EntryBuilder {
public:
  EntryBuilder(ModuleOp module, func::FuncOp kernel)
      : kernel(kernel), location(kernel.getLoc()), builder(module.getBodyRegion()),
        pointerType(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult build() {
    const unsigned count = kernel.getNumArguments();
    if (count < programArguments || kernel.getNumResults() != 0)
      return kernel.emitOpError(
                 "is not a kernel of triton-ascend's adapter: expected no result, and "
                 "the numbers and ids of programs as its last six arguments, but its "
                 "type is ")
             << kernel.getFunctionType();
    builder.setInsertionPointToEnd(builder.getInsertionBlock());
    auto entry = builder.create<func::FuncOp>(
        location, entryName, builder.getFunctionType({pointerType, pointerType, pointerType}, {}));
    Block *block = entry.addEntryBlock();
    builder.setInsertionPointToStart(block);

    SmallVector<Value> operands;
    int32_t slot = 0;
    for (auto [index, type] :
         llvm::enumerate(kernel.getArgumentTypes().drop_back(programArguments))) {
      Value operand = isHidden(index) ? hiddenArgument(type)
                                      : userArgument(block->getArgument(0), slot++, type);
      if (!operand)
        return failure();
      operands.push_back(operand);
    }
    for (unsigned index = 0; index < programArguments; ++index) {
      Value array = block->getArgument(index < 3 ? 1 : 2);
      operands.push_back(load(builder.getI32Type(), element(array, builder.getI32Type(),
                                                            static_cast<int32_t>(index % 3))));
    }
    builder.create<func::CallOp>(location, kernel, operands);
    builder.create<func::ReturnOp>(location);
    kernel->setAttr("llvm.linkage",
                    LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal));
    return success();
  }

private:
  bool isHidden(size_t index) {
    return llvm::any_of(ArrayRef{"SyncBlockLockArgIdx", "WorkspaceArgIdx"}, [&](StringRef name) {
      auto position = kernel->getAttrOfType<IntegerAttr>(name);
      return position && position.getInt() == static_cast<int64_t>(index);
    });
  }

  /// The lock and the workspace are for the cores of an NPU; no kernel that gets here uses them.
  /// Null after an error.
  Value hiddenArgument(Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref) {
      kernel.emitOpError("has a lock or workspace argument of type ") << type;
      return {};
    }
    return tdist::memRefFromPointer(builder, location, memref,
                                    builder.create<LLVM::ZeroOp>(location, pointerType));
  }

  /// What the slot holds, as the kernel takes it; null after an error.
  Value userArgument(Value slots, int32_t slot, Type type) {
    Value address = element(slots, builder.getI64Type(), slot);
    if (auto memref = dyn_cast<MemRefType>(type))
      return tdist::memRefFromPointer(builder, location, memref, load(pointerType, address));
    if (type.isInteger(1)) {
      Value byte = load(builder.getI8Type(), address);
      Value zero = builder.create<arith::ConstantIntOp>(location, 0, 8);
      return builder.create<arith::CmpIOp>(location, arith::CmpIPredicate::ne, byte, zero);
    }
    if (type.isIntOrFloat() && type.getIntOrFloatBitWidth() <= 64)
      return load(type, address);
    kernel.emitOpError("has an argument of type ") << type << ": not supported";
    return {};
  }

  Value element(Value array, Type type, int32_t index) {
    return builder.create<LLVM::GEPOp>(location, pointerType, type, array,
                                       ArrayRef<LLVM::GEPArg>{index});
  }
  Value load(Type type, Value address) {
    return builder.create<LLVM::LoadOp>(location, type, address);
  }

  func::FuncOp kernel;
  Location location;
  OpBuilder builder;
  Type pointerType;
};

struct AddKernelEntry : tdist::impl::AddKernelEntryBase<AddKernelEntry> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        kernels.push_back(function);
    if (kernels.size() != 1) {
      getOperation().emitError("expected one kernel in the module, and found ") << kernels.size();
      return signalPassFailure();
    }
    if (failed(EntryBuilder(getOperation(), kernels.front()).build()))
      signalPassFailure();
  }
};

} // namespace
