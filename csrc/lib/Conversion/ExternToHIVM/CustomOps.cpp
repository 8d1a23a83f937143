//===- CustomOps.cpp - Ops of HIVM, a dialect that is not registered here -===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CustomOps.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

/// An attribute of the dialect, such as `pipe<PIPE_S>`.
Attribute hivmAttribute(MLIRContext *context, StringRef text) {
  return parseAttribute(("#hivm." + text).str(), context);
}

} // namespace

Operation *tdist::createCustomOp(OpBuilder &builder, Location location, const DeviceCall &call) {
  MLIRContext *context = builder.getContext();
  OperationState state(location, "hivm.hir.custom");
  state.addOperands(call.operands);
  if (call.result)
    state.addTypes(call.result);
  // Not `dist.`: for some ops of that name, AscendNPU-IR 1.2.0 chooses the core by what comes
  // before the op, whatever its attribute says.
  const auto inputs = static_cast<int32_t>(call.operands.size());
  state.propertiesAttr = builder.getDictionaryAttr(
      {builder.getNamedAttr("name", builder.getStringAttr("tdist." + call.symbol)),
       builder.getNamedAttr("operandSegmentSizes", builder.getDenseI32ArrayAttr({inputs, 0, 0}))});
  state.addAttribute("hivm.is_distributed", builder.getUnitAttr());
  state.addAttribute("hivm.pipe", hivmAttribute(context, "pipe<PIPE_S>"));
  state.addAttribute("hivm.tcore_type",
                     hivmAttribute(context, call.cores == Cores::vector
                                                ? "tcore_type<VECTOR>"
                                                : "tcore_type<CUBE_AND_VECTOR>"));
  state.addAttribute("hivm.vf_mode", hivmAttribute(context, "vf_mode<SIMD>"));
  state.addAttribute("symbol", builder.getStringAttr(call.symbol));
  if (call.isPure)
    state.addAttribute("no_side_effect", builder.getUnitAttr());
  return builder.create(state);
}

void tdist::createPipeBarrier(OpBuilder &builder, Location location) {
  OperationState state(location, "hivm.hir.pipe_barrier");
  state.propertiesAttr = builder.getDictionaryAttr(
      builder.getNamedAttr("pipe", hivmAttribute(builder.getContext(), "pipe<PIPE_ALL>")));
  builder.create(state);
}

Value tdist::createSubBlockIndex(OpBuilder &builder, Location location) {
  OperationState state(location, "hivm.hir.get_sub_block_idx");
  state.addTypes(builder.getI64Type());
  return builder.create(state)->getResult(0);
}

StringRef tdist::elementName(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](Float16Type) { return "half"; })
      .Case([](BFloat16Type) { return "bfloat16"; })
      .Case([](Float32Type) { return "float"; })
      .Case([](IntegerType integer) {
        switch (integer.getWidth()) {
        case 8:
          return "int8";
        case 16:
          return "int16";
        case 32:
          return "int32";
        case 64:
          return "int64";
        default:
          return "";
        }
      })
      .Default([](Type) { return ""; });
}
