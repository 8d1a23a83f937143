//===- RuntimeSymbols.cpp - What kernels may ask of the runtime -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/RuntimeSymbols.h"

#include "mlir/IR/Builders.h"

#include <algorithm>
#include <array>

using namespace mlir;

namespace {

// clang-format off
constexpr std::array symbols{
    // axis or team
    tdist::RuntimeSymbol{"tdist_my_pe",               "i" "i"},
    tdist::RuntimeSymbol{"tdist_n_pes",               "i" "i"},
    tdist::RuntimeSymbol{"tdist_team_my_pe",          "i" "i"},
    tdist::RuntimeSymbol{"tdist_team_n_pes",          "i" "i"},
    // Vector kernels have one core a program; for mixed ones see SplitVectorHalves.
    tdist::RuntimeSymbol{"tdist_sub_vec_id",          "i" "i", 0},
    tdist::RuntimeSymbol{"tdist_sub_vec_num",         "i" "i", 1},
    // address, pe, bytes of an element -> elements
    tdist::RuntimeSymbol{"tdist_delta",               "l" "lii"},
    // A token orders by the call that made it: nothing moves over a call that may write anything.
    tdist::RuntimeSymbol{"tdist_zero",                "l" "i", 0},
    // address, pe, value, op, scope
    tdist::RuntimeSymbol{"tdist_notify_i32",          "i" "liiii"},
    tdist::RuntimeSymbol{"tdist_notify_i64",          "i" "lilii"},
    // address, count, value, scope, semantic -> token
    tdist::RuntimeSymbol{"tdist_wait_i32",            "i" "liiii"},
    tdist::RuntimeSymbol{"tdist_wait_i64",            "i" "lilii"},
    // zero
    tdist::RuntimeSymbol{"tdist_barrier_all",         "i" "i"},
    tdist::RuntimeSymbol{"tdist_barrier_all_vec",     "i" "i"},
    tdist::RuntimeSymbol{"tdist_quiet",               "i" "i"},
    tdist::RuntimeSymbol{"tdist_fence",               "i" "i"},
    // destination, source, bytes, pe
    tdist::RuntimeSymbol{"tdist_putmem",              "i" "llii"},
    tdist::RuntimeSymbol{"tdist_putmem_nbi",          "i" "llii"},
    tdist::RuntimeSymbol{"tdist_getmem",              "i" "llii"},
    tdist::RuntimeSymbol{"tdist_getmem_nbi",          "i" "llii"},
    // destination, source, bytes, address of the signal, signal, op, pe
    tdist::RuntimeSymbol{"tdist_putmem_signal",       "i" "lliliii"},
    tdist::RuntimeSymbol{"tdist_putmem_signal_nbi",   "i" "lliliii"},
    // address, signal, op, pe
    tdist::RuntimeSymbol{"tdist_signal_op",           "i" "liii"},
    // address, cmp, value -> value seen
    tdist::RuntimeSymbol{"tdist_signal_wait_until",   "i" "lii"},
    // address of a text
    tdist::RuntimeSymbol{"tdist_assert_failed",       "i" "l"},
    // address, value, pe
    tdist::RuntimeSymbol{"tdist_int_p",               "i" "lii"},
};
// clang-format on

} // namespace

FunctionType tdist::RuntimeSymbol::functionType(MLIRContext *context) const {
  Builder builder(context);
  SmallVector<Type> types;
  for (char letter : signature)
    types.push_back(builder.getIntegerType(letter == 'l' ? 64 : 32));
  return builder.getFunctionType(ArrayRef(types).drop_front(), types.front());
}

const tdist::RuntimeSymbol *tdist::findRuntimeSymbol(StringRef name) {
  const auto *found =
      llvm::find_if(symbols, [&](const RuntimeSymbol &symbol) { return symbol.name == name; });
  return found == symbols.end() ? nullptr : found;
}
