//===- ExternToHIVM.cpp - tt.extern_elementwise to device functions -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Addresses.h"
#include "CustomOps.h"

#include "tdist/Conversion/ExternCall.h"
#include "tdist/Conversion/HIVMDialect.h"
#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/Soc.h"
#include "tdist/Conversion/SourceLocation.h"
#include "tdist/Conversion/VectorCoreDifference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace tdist {
#define GEN_PASS_DEF_CONVERTEXTERNTOHIVM
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;
using tdist::Cores;
using tdist::DeviceCall;
using tdist::ExternCall;
using tdist::SocGeneration;

namespace {

// Of the encoding, and aclshmem's own.
constexpr int64_t notifySet = 1;
constexpr int64_t signalSet = 0;
constexpr int64_t signalAdd = 1;

/// Makes the device calls of one kernel.
class Converter {
public:
  Converter(func::FuncOp function, SocGeneration soc, StringRef socName)
      : function(function), soc(soc), socName(socName), isMixed(tdist::isMixedKernel(function)) {}

  LogicalResult run() {
    SmallVector<ExternCall> calls;
    function.walk([&](Operation *op) {
      if (const std::optional<ExternCall> call = ExternCall::of(op))
        calls.push_back(*call);
    });
    // Before anything is changed, since the difference knows the values that were there.
    const tdist::VectorCoreDifference difference(function);
    for (const ExternCall &call : calls) {
      commonOps[call.op] = commonOp(call.op, difference);
      hasEffects |= hasEffect(call);
      if (difference.isApart(call.op))
        apart.insert(call.op);
    }
    if (failed(checkFlags()))
      return failure();
    // All calls are looked at, so that a kernel with two mistakes shows both.
    bool isRight = true;
    for (const ExternCall &call : calls)
      isRight &= succeeded(call.checkScalars()) && succeeded(convert(call));
    return success(isRight);
  }

private:
  LogicalResult convert(const ExternCall &call) {
    if (!call.isOurs())
      return convertUserCall(call);
    if (failed(call.checkRuntimeSymbol()))
      return failure();
    const StringRef name = call.symbol.drop_front(StringRef("tdist_").size());
    if (name == "sub_vec_id")
      return convertSubVecId(call);
    if (name == "sub_vec_num")
      return convertSubVecNum(call);
    if (name == "my_pe" || name == "n_pes")
      return ask(call, {});
    if (name == "team_my_pe" || name == "team_n_pes")
      return ask(call, {call.op->getOperand(0)});
    if (name.starts_with("notify_"))
      return convertNotify(call);
    if (name.starts_with("wait_"))
      return convertWait(call);
    if (name == "signal_wait_until")
      return convertSignalWaitUntil(call);
    if (name == "signal_op")
      return convertSignalOp(call);
    if (name == "int_p")
      return convertIntP(call);
    if ((name == "delta" || name == "zero") && byAddress())
      return callFunction(call);
    if (name.starts_with("putmem") || name.starts_with("getmem"))
      return convertCopy(call, name);
    if (name == "barrier_all_vec")
      return order(call, "aclshmemx_barrier_all_vec", Cores::vector);
    if (name == "barrier_all" || name == "quiet" || name == "fence")
      return order(call, ("aclshmem_" + name).str(), everywhere());
    return call.error() << "'" << call.symbol << "' is not available on " << socName;
  }

  /// Whether it does something that others can notice.
  static bool hasEffect(const ExternCall &call) {
    const StringRef name = call.symbol;
    return !call.isPure && !name.starts_with("tdist_wait_") && name != "tdist_signal_wait_until" &&
           name != "tdist_delta" && name != "tdist_zero";
  }

  /// The flags that cores meet with must not be the kernel's own.
  LogicalResult checkFlags() {
    if (!isMixed || commonOps.empty())
      return success();
    const WalkResult result = function.walk([](Operation *op) {
      const std::optional<int64_t> flag = tdist::takenFlag(op);
      if (!flag)
        return WalkResult::advance();
      emitError(tdist::kernelLocation(op->getLoc()))
          << "event_id is " << *flag
          << ", which kernels with tl.dot and distributed operations use "
          << "themselves: choose another one";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  Cores everywhere() const { return isMixed ? Cores::cubeAndVector : Cores::vector; }

  /// The view behind an operand that is an address; null after an error.
  static Value view(const ExternCall &call, unsigned operand) {
    Value found = tdist::pointedTo(call.op->getOperand(operand));
    if (!found)
      call.error()
          << "the pointer is not one of the kernel's arguments plus an offset, so the NPU's "
             "compiler cannot know what it points to";
    return found;
  }

  /// aclshmem's name for the type that `view` points to; empty after an error.
  static StringRef element(const ExternCall &call, Value view) {
    const Type type = cast<MemRefType>(view.getType()).getElementType();
    const StringRef name = tdist::elementName(type);
    if (name.empty())
      call.error() << "aclshmem has no function for elements of type " << type
                   << ": use 8 to 64 bits, integers or floats";
    return name;
  }

  static std::optional<int64_t> constant(Value value) {
    APInt found;
    if (matchPattern(value, m_ConstantInt(&found)))
      return found.getSExtValue();
    return std::nullopt;
  }

  static Value constant(OpBuilder &builder, const ExternCall &call, int64_t value) {
    return builder.create<arith::ConstantIntOp>(call.op->getLoc(), value, 32);
  }

  /// `value` takes the place of what the call returns. Our functions that return nothing have a
  /// result in the encoding that nobody uses.
  static LogicalResult replace(const ExternCall &call, Value value) {
    // One address may be given twice: what makes it is erased once.
    const llvm::SetVector<Value> operands(call.op->operand_begin(), call.op->operand_end());
    if (value)
      call.op->getResult(0).replaceAllUsesWith(value);
    else if (!call.op->use_empty())
      return call.error() << "'" << call.symbol << "' returns nothing";
    call.op->erase();
    for (Value operand : operands)
      tdist::eraseUnusedAddress(operand);
    return success();
  }

  LogicalResult convertSubVecId(const ExternCall &call) const {
    OpBuilder builder(call.op);
    if (!isMixed)
      return replace(call, constant(builder, call, 0));
    const Location location = call.op->getLoc();
    return replace(call,
                   builder.create<arith::TruncIOp>(location, builder.getI32Type(),
                                                   tdist::createSubBlockIndex(builder, location)));
  }

  LogicalResult convertSubVecNum(const ExternCall &call) const {
    if (isMixed)
      return tdist::refuseSubVecNum(call);
    OpBuilder builder(call.op);
    return replace(call, constant(builder, call, 1));
  }

  /// A question that reads no memory of the kernel, on all cores.
  LogicalResult ask(const ExternCall &call, SmallVector<Value> operands) {
    const StringRef name = call.symbol.drop_front(StringRef("tdist_").size());
    DeviceCall device{.symbol = ("aclshmem_" + name).str(),
                      .operands = std::move(operands),
                      .result = call.op->getResult(0).getType(),
                      .cores = everywhere(),
                      .isPure = true};
    if (byAddress())
      return callFunction(call, "_mlir_ciface_" + device.symbol, std::move(device.operands));
    OpBuilder builder(call.op);
    return replace(call, tdist::createCustomOp(builder, call.op->getLoc(), device)->getResult(0));
  }

  /// The compiler for this generation aborts on a hivm.hir.custom with a result, but compiles calls
  /// of functions that take addresses for pointers.
  bool byAddress() const { return soc == SocGeneration::ascend950; }

  LogicalResult callFunction(const ExternCall &call, StringRef name, SmallVector<Value> operands) {
    if (isMixed && hasEffects)
      return call.error()
             << "a kernel with tl.dot cannot both signal or copy and use the result of a "
             << "call (" << call.symbol.drop_front(call.isOurs() ? 6 : 0) << ") on " << socName
             << ": AscendNPU-IR does not compile such a call for both kinds "
             << "of cores; do the one in a kernel without tl.dot";
    MLIRContext *context = function.getContext();
    auto module = function->getParentOfType<ModuleOp>();
    const FunctionType type =
        FunctionType::get(context, ValueRange(operands).getTypes(), call.op->getResultTypes());
    auto declared = module.lookupSymbol<func::FuncOp>(name);
    if (declared && declared.getFunctionType() != type)
      return call.error() << "extern function '" << call.symbol << "' is called as " << type
                          << " here, and as " << declared.getFunctionType()
                          << " elsewhere in this kernel";
    if (!declared) {
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      auto made = top.create<func::FuncOp>(call.op->getLoc(), name, type);
      made.setPrivate();
      made->setAttr("hivm.func_core_type",
                    tdist::VerbatimAttr::get(context, "func_core_type<AIC_OR_AIV>"));
    }
    OpBuilder builder(call.op);
    return replace(
        call,
        builder.create<func::CallOp>(call.op->getLoc(), name, call.op->getResultTypes(), operands)
            .getResult(0));
  }

  /// The same with the operands as they are, but for addresses, which have lost their offsets.
  LogicalResult callFunction(const ExternCall &call) {
    OpBuilder builder(call.op);
    SmallVector<Value> operands;
    for (Value operand : call.op->getOperands()) {
      Value pointer = operand.getType().isInteger(64) ? tdist::pointedTo(operand) : Value();
      operands.push_back(pointer ? tdist::addressOf(builder, call.op->getLoc(), pointer) : operand);
    }
    return callFunction(call, call.symbol, std::move(operands));
  }

  LogicalResult convertNotify(const ExternCall &call) {
    Value word = view(call, 0);
    if (!word)
      return failure();
    const std::optional<int64_t> op = constant(call.op->getOperand(3));
    if (!op)
      return call.error() << "sig_op is not a constant";
    Value pe = call.op->getOperand(1);
    Value signal = call.op->getOperand(2);
    const bool isWide = signal.getType().isInteger(64);
    if (*op == notifySet)
      return act(call, {.symbol = isWide ? "aclshmem_int64_p" : "aclshmem_int32_p",
                        .operands = {word, signal, pe}});
    if (!isWide) {
      OpBuilder builder(call.op);
      return act(call,
                 {.symbol = "aclshmemx_signal_op",
                  .operands = {word, signal, constant(builder, call, signalAdd), pe}},
                 After::itsPipes);
    }
    if (soc != SocGeneration::ascend950)
      return call.error() << "notify: sig_op is 'add' and the word has 64 bits; " << socName
                          << " adds to words of other PEs in int32 only: use int32 signals, or "
                             "sig_op='set' with a word per producer";
    return act(call, {.symbol = "aclshmem_int64_atomic_add", .operands = {word, signal, pe}},
               After::itsPipes);
  }

  LogicalResult convertWait(const ExternCall &call) {
    if (byAddress())
      return callFunction(call);
    Value word = view(call, 0);
    if (!word)
      return failure();
    OpBuilder builder(call.op);
    const Location location = call.op->getLoc();
    Value value = call.op->getOperand(2);
    Value count =
        builder.create<arith::ExtSIOp>(location, builder.getI64Type(), call.op->getOperand(1));
    return replace(call, tdist::createCustomOp(builder, location,
                                               {.symbol = value.getType().isInteger(64)
                                                              ? "aclshmem_wait_int64"
                                                              : "aclshmem_wait_int32",
                                                .operands = {word, count, value},
                                                .result = builder.getI32Type(),
                                                .cores = everywhere()})
                             ->getResult(0));
  }

  LogicalResult convertSignalWaitUntil(const ExternCall &call) {
    if (byAddress())
      return callFunction(call);
    Value word = view(call, 0);
    if (!word)
      return failure();
    OpBuilder builder(call.op);
    return replace(call, tdist::createCustomOp(
                             builder, call.op->getLoc(),
                             {.symbol = "aclshmem_signal_wait_until",
                              .operands = {word, call.op->getOperand(1), call.op->getOperand(2)},
                              .result = builder.getI32Type(),
                              .cores = everywhere()})
                             ->getResult(0));
  }

  LogicalResult convertSignalOp(const ExternCall &call) {
    Value word = view(call, 0);
    if (!word)
      return failure();
    // An `add` is a copy from UB that adds.
    return act(call,
               {.symbol = "aclshmemx_signal_op",
                .operands = {word, call.op->getOperand(1), call.op->getOperand(2),
                             call.op->getOperand(3)}},
               constant(call.op->getOperand(2)) == signalSet ? After::nothing : After::itsPipes);
  }

  LogicalResult convertIntP(const ExternCall &call) {
    Value word = view(call, 0);
    if (!word)
      return failure();
    return act(call, {.symbol = "aclshmem_int32_p",
                      .operands = {word, call.op->getOperand(1), call.op->getOperand(2)}});
  }

  /// putmem and getmem with all their endings.
  LogicalResult convertCopy(const ExternCall &call, StringRef name) {
    Value destination = view(call, 0);
    Value source = destination ? view(call, 1) : Value();
    const StringRef type = source ? element(call, destination) : StringRef();
    if (type.empty())
      return failure();
    DeviceCall copy{.symbol = ("aclshmem_" + type + "_" + name).str(),
                    .operands = {destination, source}};
    for (Value operand : call.op->getOperands().drop_front(2))
      copy.operands.push_back(operand);
    if (name.contains("signal")) {
      Value word = view(call, 3);
      if (!word)
        return failure();
      copy.operands[3] = word;
    }
    return act(call, std::move(copy), After::allCores);
  }

  /// A barrier or what completes copies, for all cores that there are. What an earlier store of the
  /// program has not done yet must be done by then.
  LogicalResult order(const ExternCall &call, std::string symbol, Cores cores) {
    OpBuilder builder(call.op);
    const Location location = call.op->getLoc();
    tdist::createPipeBarrier(builder, location);
    // Where all cores of all programs meet anyway, those of one need not.
    const bool meet = isMixed && symbol != "aclshmem_barrier_all";
    if (meet)
      tdist::createCoreMeeting(builder, location);
    tdist::createCustomOp(builder, location, {.symbol = std::move(symbol), .cores = cores});
    if (meet)
      tdist::createCoreMeeting(builder, location);
    return replace(call, {});
  }

  /// A function of another library, or one of aclshmem's that the language does not have: where it
  /// takes a pointer it gets the view.
  LogicalResult convertUserCall(const ExternCall &call) {
    DeviceCall device{.symbol = call.symbol.str(),
                      .cores = everywhere(),
                      .isPure = call.isPure,
                      .library = call.library,
                      .path = call.path};
    for (Value operand : call.op->getOperands()) {
      Value pointer = operand.getType().isInteger(64) ? tdist::pointedTo(operand) : Value();
      device.operands.push_back(pointer ? pointer : operand);
    }
    if (call.op->use_empty())
      return call.isPure ? replace(call, {}) : act(call, std::move(device), After::allCores);
    if (byAddress())
      return callFunction(call);
    device.result = call.op->getResult(0).getType();
    OpBuilder builder(call.op);
    return replace(call, tdist::createCustomOp(builder, call.op->getLoc(), device)->getResult(0));
  }

  /// What must wait for a call: the compiler does not see which pipes it uses.
  enum class After { nothing, itsPipes, allCores };

  /// Something with an effect, which a program does once, and after all that it has stored.
  LogicalResult act(const ExternCall &call, DeviceCall device, After after = After::nothing) {
    OpBuilder builder(call.op);
    const Location location = call.op->getLoc();
    device.cores = Cores::vector;
    completeStores(call.op);
    if (isMixed && !apart.contains(call.op)) {
      Value first = builder.create<arith::CmpIOp>(
          location, arith::CmpIPredicate::eq, tdist::createSubBlockIndex(builder, location),
          builder.create<arith::ConstantIntOp>(location, 0, 64));
      auto condition = builder.create<scf::IfOp>(location, first);
      builder.setInsertionPointToStart(condition.thenBlock());
    }
    tdist::createCustomOp(builder, location, device);
    if (after != After::nothing)
      tdist::createPipeBarrier(builder, location);
    if (after == After::allCores)
      meetAfter(call.op);
    return replace(call, {});
  }

  /// Before `op`: in a mixed kernel, the stores of a program are those of its three cores.
  void completeStores(Operation *op) {
    OpBuilder builder(op);
    Operation *common = commonOps.lookup(op);
    if (isMixed && (common == op || metBefore.insert(common).second)) {
      builder.setInsertionPoint(common);
      tdist::createPipeBarrier(builder, op->getLoc());
      tdist::createCoreMeeting(builder, op->getLoc());
    }
    if (!isMixed || common != op) {
      builder.setInsertionPoint(op);
      tdist::createPipeBarrier(builder, op->getLoc());
    }
  }

  /// After what `op` does on one core, in a mixed kernel.
  void meetAfter(Operation *op) {
    Operation *common = commonOps.lookup(op);
    if (!isMixed || (common != op && !metAfter.insert(common).second))
      return;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfter(common);
    tdist::createCoreMeeting(builder, op->getLoc());
  }

  /// What all cores of the program come to: `op`, or the outermost loop or condition around it that
  /// they do not go through in step.
  Operation *commonOp(Operation *op, const tdist::VectorCoreDifference &difference) const {
    Operation *common = op;
    for (Operation *parent = op->getParentOp(); parent != function; parent = parent->getParentOp())
      if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(parent) && !difference.isInStep(parent))
        common = parent;
    return common;
  }

  func::FuncOp function;
  SocGeneration soc;
  StringRef socName;
  bool isMixed;
  bool hasEffects = false;
  llvm::DenseSet<Operation *> apart; // calls that each vector core makes for itself
  llvm::DenseMap<Operation *, Operation *> commonOps;
  // Loops and conditions of one core, before and after which all cores have met.
  llvm::DenseSet<Operation *> metBefore;
  llvm::DenseSet<Operation *> metAfter;
};

struct ConvertExternToHIVM : tdist::impl::ConvertExternToHIVMBase<ConvertExternToHIVM> {
  using ConvertExternToHIVMBase::ConvertExternToHIVMBase;

  void runOnOperation() override {
    const std::optional<SocGeneration> generation = tdist::socGeneration(soc);
    if (!generation) {
      emitError(getOperation().getLoc())
          << "soc is '" << soc << "'; it must be the name of an NPU, such as Ascend910B3, "
          << "Ascend910_9392 or Ascend950PR_9589";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(Converter(function, *generation, soc).run()))
        return signalPassFailure();
  }
};

} // namespace
