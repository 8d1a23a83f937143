//===- CheckSignalOrder.cpp - Fail on a signal before its data ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/Passes.h"
#include "tdist/Conversion/SourceLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tdist {
#define GEN_PASS_DEF_CHECKSIGNALORDER
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// What a property such as `pipe = #hivm.pipe<PIPE_S>` says: PIPE_S.
StringRef word(Operation *op, StringRef property) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto value = properties ? properties.getAs<tdist::VerbatimAttr>(property) : tdist::VerbatimAttr();
  return value ? value.text().split('<').second.split('>').first : StringRef();
}

/// The number of a flag between cores; empty when it is known only when the kernel runs.
std::optional<int64_t> flagOf(Operation *op) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto flag = properties ? properties.getAs<IntegerAttr>("static_flag_id") : IntegerAttr();
  return flag ? std::optional(flag.getInt()) : std::nullopt;
}

bool isNamed(Operation *op, StringRef name) { return op->getName().getStringRef() == name; }

/// The device function that is called, without the ending for the core and the prefix that
/// functions without pointers have; empty for other ops.
StringRef callee(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  StringRef name = call ? call.getCallee().split('.').first : StringRef();
  name.consume_front("_mlir_ciface_");
  return name;
}

/// Whether another PE, or another core, can notice the call.
bool isSignal(StringRef symbol) {
  constexpr StringLiteral silent[] = {
      "aclshmem_ptr_",  "aclshmem_consume_token_", "aclshmem_wait_", "aclshmem_signal_wait_until",
      "aclshmem_my_pe", "aclshmem_n_pes",          "aclshmem_team_"};
  return symbol.starts_with("aclshmem") &&
         llvm::none_of(silent, [&](StringRef prefix) { return symbol.starts_with(prefix); });
}

bool isInGlobalMemory(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  auto space = memref ? dyn_cast_or_null<tdist::VerbatimAttr>(memref.getMemorySpace())
                      : tdist::VerbatimAttr();
  return space && space.text() == "address_space<gm>";
}

/// The pipe that a call stores to global memory on; empty when it does not. A function that is not
/// known is taken for a store.
StringRef storingPipe(Operation *op) {
  const StringRef name = callee(op);
  if (name.empty() || name.starts_with("aclshmem") || name.starts_with("load_") ||
      name.starts_with("nd2nz") || llvm::none_of(op->getOperandTypes(), isInGlobalMemory))
    return {};
  return name.starts_with("fixpipe") ? "PIPE_FIX" : "PIPE_MTE3";
}

/// Whether `value` is not the same on both vector cores of a mixed kernel.
bool differsBetweenVectorCores(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  return isNamed(op, "hivm.hir.get_sub_block_idx") ||
         llvm::any_of(op->getOperands(), differsBetweenVectorCores);
}

/// What is known where a core has got to.
struct State {
  /// Pipes with stores that may not be complete, and one of these.
  std::map<StringRef, Operation *> unfinished = {};
  /// Flags (pipe, event) to the scalar unit, raised behind all stores of the pipe.
  std::set<std::pair<StringRef, StringRef>> raised = {};
  /// Flags between cores that this one has raised behind all its stores.
  std::set<int64_t> joined = {};
  /// Flags between cores that this one has waited for since it raised one itself.
  std::set<int64_t> waitedFor = {};
  /// Whether the stores of the program's other cores are complete too.
  bool haveMet = false;

  /// What is known where the ways of both come together.
  void merge(const State &other) {
    unfinished.insert(other.unfinished.begin(), other.unfinished.end());
    keepCommon(raised, other.raised);
    keepCommon(joined, other.joined);
    keepCommon(waitedFor, other.waitedFor);
    haveMet &= other.haveMet;
  }

private:
  template <class Set> static void keepCommon(Set &mine, const Set &others) {
    std::erase_if(mine, [&](const auto &element) { return !others.contains(element); });
  }
};

/// How the flags between cores are raised by one of these.
struct Raised {
  /// Whether the stores of the core are always complete by then.
  bool isBehindStores = true;
  /// Flags that it has always waited for before.
  std::optional<std::set<int64_t>> waitedFor = std::nullopt;
};
using RaisedFlags = std::map<int64_t, Raised>;

/// Goes through what one kind of core does.
class Core {
public:
  /// `cube`: for the vector half of a mixed kernel, the flags that the cube core raises.
  explicit Core(func::FuncOp function, const RaisedFlags *cube = nullptr)
      : function(function), cube(cube) {}

  LogicalResult check() {
    isSilent = false;
    walk(function.getBody().front(), {});
    return success(isRight);
  }

  RaisedFlags raisedFlags() {
    walk(function.getBody().front(), {});
    return flags;
  }

private:
  State walk(Block &block, State state) {
    for (Operation &op : block)
      visit(op, state);
    return state;
  }

  void visit(Operation &op, State &state) {
    if (auto condition = dyn_cast<scf::IfOp>(op))
      return visitCondition(condition, state);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitLoop(loop, state,
                       [&](State &around) { around = walk(*loop.getBody(), std::move(around)); });
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return visitLoop(loop, state, [&](State &around) {
        around = walk(*loop.getAfterBody(), walk(*loop.getBeforeBody(), std::move(around)));
      });
    if (isNamed(&op, "hivm.hir.pipe_barrier")) {
      if (word(&op, "pipe") == "PIPE_ALL")
        state.unfinished.clear();
    } else if (isNamed(&op, "hivm.hir.set_flag")) {
      if (word(&op, "wait_pipe") == "PIPE_S")
        state.raised.insert({word(&op, "set_pipe"), word(&op, "static_event_id")});
    } else if (isNamed(&op, "hivm.hir.wait_flag")) {
      if (state.raised.erase({word(&op, "set_pipe"), word(&op, "static_event_id")}))
        state.unfinished.erase(word(&op, "set_pipe"));
    } else if (isNamed(&op, "hivm.hir.sync_block_set")) {
      raise(op, state);
    } else if (isNamed(&op, "hivm.hir.sync_block_wait")) {
      waitFor(op, state);
    } else if (const StringRef pipe = storingPipe(&op); !pipe.empty()) {
      store(op, pipe, state);
    } else if (isSignal(callee(&op))) {
      signal(op, state);
    }
  }

  void store(Operation &op, StringRef pipe, State &state) {
    state.unfinished[pipe] = &op;
    std::erase_if(state.raised, [&](const auto &flag) { return flag.first == pipe; });
    state.joined.clear();
    // What a vector core stores under a condition of its own is nothing to the other ones.
    state.haveMet &= isApart;
  }

  /// The flag goes up behind the work of one pipe.
  void raise(Operation &op, State &state) {
    const std::optional<int64_t> flag = flagOf(&op);
    if (!flag)
      return;
    const bool isBehindStores = llvm::all_of(state.unfinished, [&](const auto &unfinished) {
      return unfinished.first == word(&op, "tpipe");
    });
    Raised &raised = flags[*flag];
    raised.isBehindStores &= isBehindStores;
    if (!raised.waitedFor)
      raised.waitedFor = state.waitedFor;
    std::erase_if(*raised.waitedFor,
                  [&](int64_t waited) { return !state.waitedFor.contains(waited); });
    state.waitedFor.clear();
    if (isBehindStores)
      state.joined.insert(*flag);
  }

  void waitFor(Operation &op, State &state) {
    const std::optional<int64_t> flag = flagOf(&op);
    if (!flag)
      return;
    state.waitedFor.insert(*flag);
    if (!cube)
      return;
    const auto raised = cube->find(*flag);
    if (raised == cube->end() || !raised->second.isBehindStores)
      return;
    const std::optional<std::set<int64_t>> &before = raised->second.waitedFor;
    if (!before)
      return;
    // The cube core goes on only when both vector cores have raised theirs.
    state.haveMet |=
        llvm::any_of(*before, [&](int64_t joined) { return state.joined.contains(joined); });
    state.joined.clear();
  }

  void signal(Operation &op, const State &state) {
    const StringRef symbol = callee(&op);
    hasSignal = true;
    if (isSilent)
      return;
    for (const auto &[pipe, store] : state.unfinished) {
      isRight = false;
      InFlightDiagnostic error = emitError(tdist::kernelLocation(op.getLoc()))
                                 << "'" << symbol << "' may be seen before the data: an earlier "
                                 << "store on " << pipe << " is not complete";
      error.attachNote(tdist::kernelLocation(store->getLoc())) << "this one";
    }
    // In that barrier the cores of a program meet themselves.
    if (!cube || state.haveMet || symbol == "aclshmem_barrier_all")
      return;
    isRight = false;
    emitError(tdist::kernelLocation(op.getLoc()))
        << "'" << symbol << "' may be seen before the data: the stores of the program's other "
        << "cores, the cube core and the second vector core, are not waited for";
  }

  void visitCondition(scf::IfOp condition, State &state) {
    const bool wasApart = isApart;
    const bool hadSignal = std::exchange(hasSignal, false);
    isApart |= differsBetweenVectorCores(condition.getCondition());
    State otherwise = state;
    state = walk(*condition.thenBlock(), std::move(state));
    if (condition.elseBlock())
      otherwise = walk(*condition.elseBlock(), std::move(otherwise));
    state.merge(otherwise);
    leave(state, wasApart, hadSignal);
  }

  template <class Loop, class Body> void visitLoop(Loop loop, State &state, Body body) {
    const bool wasApart = isApart;
    const bool hadSignal = std::exchange(hasSignal, false);
    isApart |= llvm::any_of(loop->getOperands(), differsBetweenVectorCores);
    State around = state;
    around.haveMet &= isApart;
    // Once for what an iteration finds of the one before it.
    const bool wasSilent = std::exchange(isSilent, true);
    State first = around;
    body(first);
    around.merge(first);
    isSilent = wasSilent;
    body(around);
    state.merge(around);
    state.haveMet = false;
    leave(state, wasApart, hadSignal);
  }

  /// Behind a loop or condition with a signal, the other cores may have stored again.
  void leave(State &state, bool wasApart, bool hadSignal) {
    state.haveMet &= !hasSignal && isApart == wasApart;
    hasSignal |= hadSignal;
    isApart = wasApart;
  }

  func::FuncOp function;
  const RaisedFlags *cube;
  RaisedFlags flags;
  bool isApart = false;
  bool hasSignal = false; // in the loop or condition that is being gone through
  bool isSilent = true;
  bool isRight = true;
};

struct CheckSignalOrder : tdist::impl::CheckSignalOrderBase<CheckSignalOrder> {
  void runOnOperation() override {
    bool isRight = true;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        isRight &= succeeded(check(function));
    if (!isRight)
      signalPassFailure();
  }

  LogicalResult check(func::FuncOp function) {
    StringRef name = function.getName();
    if (!name.consume_back("_mix_aiv"))
      return Core(function).check();
    auto cube = getOperation().lookupSymbol<func::FuncOp>((name + "_mix_aic").str());
    if (!cube)
      return Core(function).check();
    const RaisedFlags flags = Core(cube).raisedFlags();
    return Core(function, &flags).check();
  }
};

} // namespace
