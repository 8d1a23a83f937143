//===- CustomOps.cpp - Ops of HIVM, a dialect that is not registered here -===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CustomOps.h"

#include "tdist/Conversion/HIVMDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

// Flags between the cores of one AI core. AscendNPU-IR counts its own up from 0, and the barriers
// of aclshmem, which are AscendC's, use those from 11 on.
constexpr int64_t vectorsAreHere = 9;
constexpr int64_t allAreHere = 10;

/// A hivm.hir.sync_block_set or hivm.hir.sync_block_wait: the core that runs it, and the pipe whose
/// work comes before.
void createFlagOp(OpBuilder &builder, Location location, StringRef name, StringRef core,
                  StringRef pipe, int64_t flag) {
  MLIRContext *context = builder.getContext();
  OperationState state(location, name);
  SmallVector<NamedAttribute> properties{
      builder.getNamedAttr("tcore_type",
                           tdist::VerbatimAttr::get(context, ("tcore_type<" + core + ">").str())),
      builder.getNamedAttr("tpipe",
                           tdist::VerbatimAttr::get(context, ("pipe<" + pipe + ">").str())),
      builder.getNamedAttr("pipe", tdist::VerbatimAttr::get(context, "pipe<PIPE_S>")),
      builder.getNamedAttr("static_flag_id", builder.getI64IntegerAttr(flag))};
  if (name.ends_with("set"))
    properties.push_back(
        builder.getNamedAttr("operandSegmentSizes", builder.getDenseI32ArrayAttr({0, 0})));
  state.propertiesAttr = builder.getDictionaryAttr(properties);
  builder.create(state);
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
  state.addAttribute("hivm.pipe", tdist::VerbatimAttr::get(context, "pipe<PIPE_S>"));
  state.addAttribute("hivm.tcore_type",
                     tdist::VerbatimAttr::get(context, call.cores == Cores::vector
                                                           ? "tcore_type<VECTOR>"
                                                           : "tcore_type<CUBE_AND_VECTOR>"));
  state.addAttribute("hivm.vf_mode", tdist::VerbatimAttr::get(context, "vf_mode<SIMD>"));
  state.addAttribute("symbol", builder.getStringAttr(call.symbol));
  if (call.isPure)
    state.addAttribute("no_side_effect", builder.getUnitAttr());
  if (!call.library.empty())
    state.addAttribute("libname", builder.getStringAttr(call.library));
  if (!call.path.empty())
    state.addAttribute("libpath", builder.getStringAttr(call.path));
  return builder.create(state);
}

void tdist::createPipeBarrier(OpBuilder &builder, Location location) {
  OperationState state(location, "hivm.hir.pipe_barrier");
  state.propertiesAttr = builder.getDictionaryAttr(builder.getNamedAttr(
      "pipe", tdist::VerbatimAttr::get(builder.getContext(), "pipe<PIPE_ALL>")));
  builder.create(state);
}

void tdist::createCoreMeeting(OpBuilder &builder, Location location) {
  constexpr StringLiteral set = "hivm.hir.sync_block_set";
  constexpr StringLiteral wait = "hivm.hir.sync_block_wait";
  createFlagOp(builder, location, set, "VECTOR", "PIPE_MTE3", vectorsAreHere);
  createFlagOp(builder, location, wait, "CUBE", "PIPE_MTE3", vectorsAreHere);
  createFlagOp(builder, location, set, "CUBE", "PIPE_FIX", allAreHere);
  createFlagOp(builder, location, wait, "VECTOR", "PIPE_FIX", allAreHere);
}

std::optional<int64_t> tdist::takenFlag(Operation *op) {
  if (!op->getName().getStringRef().starts_with("hivm.hir.sync_block_"))
    return std::nullopt;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  for (const StringRef name : {"static_flag_id", "flag_id"})
    if (auto flag = properties ? properties.getAs<IntegerAttr>(name) : IntegerAttr())
      if (flag.getInt() == vectorsAreHere || flag.getInt() == allAreHere)
        return flag.getInt();
  return std::nullopt;
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
