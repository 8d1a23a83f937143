//===- RouteGlobalMemory.cpp - Loads and stores through the runtime -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/LocationGlobals.h"
#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace tdist {
#define GEN_PASS_DEF_ROUTEGLOBALMEMORY
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// What position `position` of the aggregate `value` holds; null when that is not known.
Value fieldOf(Value value, ArrayRef<int64_t> position) {
  while (auto insert = value.getDefiningOp<LLVM::InsertValueOp>()) {
    if (insert.getPosition() == position)
      return insert.getValue();
    value = insert.getContainer();
  }
  return {};
}

/// Whether the pointer surely leads to memory that only this program has.
bool isPrivate(Value pointer) {
  while (pointer) {
    Operation *op = pointer.getDefiningOp();
    if (!op)
      return false;
    if (isa<LLVM::AllocaOp, LLVM::AddressOfOp>(op))
      return true;
    if (auto call = dyn_cast<LLVM::CallOp>(op))
      return call.getCallee() == "tdist_sim_alloc";
    if (auto element = dyn_cast<LLVM::GEPOp>(op))
      pointer = element.getBase();
    else if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op))
      pointer = fieldOf(extract.getContainer(), extract.getPosition());
    else
      return false;
  }
  return false;
}

class Router {
public:
  explicit Router(ModuleOp module)
      : module(module), layout(module), locations(module, "tdist_access_", "tdist_access_file_") {}

  void route(LLVM::LLVMFuncOp function) {
    SmallVector<Operation *> accesses;
    function.walk([&](Operation *op) {
      if (isa<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(op))
        accesses.push_back(op);
    });
    entry = &function.getBody().front();
    for (Operation *op : accesses) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        routeLoad(load);
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        routeStore(store);
      else
        call(OpBuilder(op), op->getLoc(), "tdist_sim_release", {});
    }
  }

private:
  void routeLoad(LLVM::LoadOp load) {
    if (isPrivate(load.getAddr()))
      return;
    OpBuilder builder(load);
    if (load.getOrdering() != LLVM::AtomicOrdering::not_atomic) {
      call(builder, load.getLoc(), "tdist_sim_release", {});
      return;
    }
    const Type type = load.getRes().getType();
    Value copy = place(type, load.getLoc());
    call(builder, load.getLoc(), "tdist_sim_load",
         {load.getAddr(), copy, bytesOf(builder, type, load.getLoc())});
    load.getRes().replaceAllUsesWith(
        builder.create<LLVM::LoadOp>(load.getLoc(), type, copy).getRes());
    load.erase();
  }

  void routeStore(LLVM::StoreOp store) {
    if (isPrivate(store.getAddr()))
      return;
    OpBuilder builder(store);
    if (store.getOrdering() != LLVM::AtomicOrdering::not_atomic) {
      call(builder, store.getLoc(), "tdist_sim_release", {});
      return;
    }
    const Type type = store.getValue().getType();
    Value copy = place(type, store.getLoc());
    builder.create<LLVM::StoreOp>(store.getLoc(), store.getValue(), copy);
    call(builder, store.getLoc(), "tdist_sim_store",
         {store.getAddr(), copy, bytesOf(builder, type, store.getLoc())});
    store.erase();
  }

  /// Memory on the stack for one value. At the top of the function, or a loop would eat the stack.
  Value place(Type type, Location location) {
    OpBuilder builder = OpBuilder::atBlockBegin(entry);
    Value one = builder.create<LLVM::ConstantOp>(location, builder.getI64IntegerAttr(1));
    return builder.create<LLVM::AllocaOp>(
        location, LLVM::LLVMPointerType::get(builder.getContext()), type, one);
  }

  Value bytesOf(OpBuilder &builder, Type type, Location location) {
    const auto bytes = static_cast<int64_t>(layout.getTypeSize(type).getFixedValue());
    return builder.create<LLVM::ConstantOp>(location, builder.getI64IntegerAttr(bytes));
  }

  void call(OpBuilder builder, Location location, StringRef name, ArrayRef<Value> operands) {
    SmallVector<Value> all(operands);
    all.push_back(builder.create<LLVM::AddressOfOp>(location, locations.of(location)));
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function) {
      auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                              llvm::to_vector(ValueRange(all).getTypes()));
      function =
          OpBuilder::atBlockBegin(module.getBody()).create<LLVM::LLVMFuncOp>(location, name, type);
    }
    builder.create<LLVM::CallOp>(location, function, all);
  }

  ModuleOp module;
  DataLayout layout;
  tdist::LocationGlobals locations;
  Block *entry = nullptr;
};

struct RouteGlobalMemory : tdist::impl::RouteGlobalMemoryBase<RouteGlobalMemory> {
  void runOnOperation() override {
    Router router(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<LLVM::LLVMFuncOp>()))
      // The entry reads the launch's arguments, which nobody writes.
      if (!function.isExternal() && function.getName() != "tdist_kernel_entry")
        router.route(function);
  }
};

} // namespace
