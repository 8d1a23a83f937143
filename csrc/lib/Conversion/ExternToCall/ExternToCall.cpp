//===- ExternToCall.cpp - tt.extern_elementwise to calls of C functions ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/ExternCall.h"
#include "tdist/Conversion/LocationGlobals.h"
#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/RuntimeSymbols.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTEXTERNTOCALL
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

using tdist::ExternCall;

/// Makes the calls, and the functions and constants they need, of one module.
class Converter {
public:
  explicit Converter(ModuleOp module)
      : module(module), top(OpBuilder::atBlockBegin(module.getBody())),
        locations(module, "tdist_loc_", "tdist_file_") {}

  LogicalResult convert(const ExternCall &call) {
    if (failed(call.checkScalars()))
      return failure();
    return call.isOurs() ? convertRuntimeCall(call) : convertUserCall(call);
  }

  /// Leaves the libraries that the compiled kernel must be linked with on the module.
  void recordLibraries() {
    if (libraries.empty())
      return;
    SmallVector<StringRef> paths(libraries.begin(), libraries.end());
    module->setAttr("tdist.extern_libs", top.getStrArrayAttr(paths));
  }

private:
  LogicalResult convertRuntimeCall(const ExternCall &call) {
    if (failed(call.checkRuntimeSymbol()))
      return failure();
    const tdist::RuntimeSymbol *symbol = tdist::findRuntimeSymbol(call.symbol);
    const FunctionType expected = symbol->functionType(module.getContext());
    OpBuilder builder(call.op);
    const Location location = call.op->getLoc();
    if (symbol->constant) {
      replace(call,
              builder.create<arith::ConstantOp>(
                  location, builder.getIntegerAttr(expected.getResult(0), *symbol->constant)));
      return success();
    }
    SmallVector<Value> operands(call.op->getOperands());
    operands.push_back(
        builder.create<LLVM::AddressOfOp>(location, locations.of(call.op->getLoc())));
    const std::string name =
        ("tdist_sim_" + call.symbol.drop_front(StringRef("tdist_").size())).str();
    func::FuncOp function =
        declare(name,
                FunctionType::get(module.getContext(), ValueRange(operands).getTypes(),
                                  expected.getResults()),
                location);
    replace(call, builder.create<func::CallOp>(location, function, operands).getResult(0));
    return success();
  }

  LogicalResult convertUserCall(const ExternCall &call) {
    if (call.path.empty())
      return call.error() << "extern function '" << call.symbol << "' of library '" << call.library
                          << "' has no libpath: on simulated NPUs it must be the path of a shared "
                             "library built for this host";
    if (auto existing = module.lookupSymbol<func::FuncOp>(call.symbol);
        existing && existing.getFunctionType() != call.type())
      return call.error() << "extern function '" << call.symbol << "' is called as " << call.type()
                          << " here, and as " << existing.getFunctionType()
                          << " elsewhere in this kernel";
    libraries.insert(call.path);
    OpBuilder builder(call.op);
    func::FuncOp function = declare(call.symbol, call.type(), call.op->getLoc());
    function->setAttr("tdist.extern", top.getUnitAttr());
    extendSmallIntegers(function);
    replace(call, builder.create<func::CallOp>(call.op->getLoc(), function, call.op->getOperands())
                      .getResult(0));
    return success();
  }

  static void replace(const ExternCall &call, Value value) {
    call.op->getResult(0).replaceAllUsesWith(value);
    call.op->erase();
  }

  /// The declaration carries no memory attribute on purpose. To every pass, here and in LLVM, a
  /// call of an unknown function reads and writes all memory that anyone else can know, so no load
  /// or store of a kernel's arguments moves over a wait, a notify or a barrier.
  func::FuncOp declare(StringRef name, FunctionType type, Location location) {
    if (auto existing = module.lookupSymbol<func::FuncOp>(name))
      return existing;
    auto function = top.create<func::FuncOp>(location, name, type);
    function.setPrivate();
    return function;
  }

  /// C callers extend integers below 32 bits; Triton's are signed, but for i1.
  static void extendSmallIntegers(func::FuncOp function) {
    MLIRContext *context = function.getContext();
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (type.isInteger() && type.getIntOrFloatBitWidth() < 32)
        function.setArgAttr(index,
                            type.isInteger(1) ? LLVM::LLVMDialect::getZExtAttrName()
                                              : LLVM::LLVMDialect::getSExtAttrName(),
                            UnitAttr::get(context));
  }

  ModuleOp module;
  OpBuilder top;
  llvm::SmallSetVector<StringRef, 4> libraries;
  tdist::LocationGlobals locations;
};

struct ConvertExternToCall : tdist::impl::ConvertExternToCallBase<ConvertExternToCall> {
  void runOnOperation() override {
    SmallVector<ExternCall> calls;
    getOperation().walk([&](Operation *op) {
      if (const std::optional<ExternCall> call = ExternCall::of(op))
        calls.push_back(*call);
    });
    Converter converter(getOperation());
    // All calls are looked at, so that a kernel with two mistakes shows both.
    bool failed = false;
    for (const ExternCall &call : calls)
      failed |= mlir::failed(converter.convert(call));
    if (failed)
      return signalPassFailure();
    converter.recordLibraries();
  }
};

} // namespace
