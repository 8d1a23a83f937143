//===- DropForeign.cpp - Drop marks and attributes of foreign dialects ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "tdist/Conversion/HIVMDialect.h"
#include "tdist/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tdist {
#define GEN_PASS_DEF_DROPFOREIGN
#include "tdist/Conversion/Passes.h.inc"
} // namespace tdist

using namespace mlir;

namespace {

/// An attribute such as `hivm.unlikely_condition`, which says nothing to anybody here.
bool isForeign(NamedAttribute attribute) {
  const Dialect *dialect = attribute.getNameDialect();
  return attribute.getName().getValue().contains('.') &&
         (!dialect || isa<tdist::HIVMDialect>(dialect));
}

bool isMark(Operation *op) {
  const StringRef name = op->getName().getStringRef();
  return name == "annotation.mark" || name == "gpu.barrier";
}

struct DropForeign : tdist::impl::DropForeignBase<DropForeign> {
  void runOnOperation() override {
    SmallVector<Operation *> marks;
    getOperation().walk([&](Operation *op) {
      if (isMark(op)) {
        marks.push_back(op);
        return;
      }
      SmallVector<StringAttr> names;
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        if (isForeign(attribute))
          names.push_back(attribute.getName());
      for (StringAttr name : names)
        op->removeDiscardableAttr(name);
      // The direction of an argument (tt.tensor_kind) has been read before the kernel comes here.
      if (auto function = dyn_cast<func::FuncOp>(op))
        function.removeArgAttrsAttr();
    });
    for (Operation *mark : marks)
      mark->erase();
  }
};

} // namespace
