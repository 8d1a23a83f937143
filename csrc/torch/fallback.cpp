//===- fallback.cpp - Boxed kernels that run the CPU's
//------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "fallback.h"

#include "generator.h"
#include "host_alias.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <mutex>

namespace tdist::npu {
namespace {

bool isReduced(c10::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

/// Operators that take CPU tensors beside those on npu, as they do beside CUDA's.
bool takesHostTensors(const std::string &name) {
  static const auto *names = new std::vector<std::string>{"aten::index",
                                                          "aten::index_put",
                                                          "aten::index_put_",
                                                          "aten::_index_put_impl_",
                                                          "aten::_unsafe_index",
                                                          "aten::_unsafe_index_put",
                                                          "aten::_pack_padded_sequence"};
  return std::find(names->begin(), names->end(), name) != names->end();
}

bool isGeneratorArgument(const c10::Argument &argument) {
  const c10::TypePtr &type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    return optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }
  return type->kind() == c10::TypeKind::GeneratorType;
}

/// While it lives, the CPU's default generator goes on from where the NPU's is: for operators that
/// draw random numbers without taking a generator.
class DefaultGeneratorSwap {
public:
  explicit DefaultGeneratorSwap(c10::DeviceIndex index)
      : ofNpu(hostGenerator(defaultGenerator(index))), ofCpu(at::detail::getDefaultCPUGenerator()),
        saved(ofCpu.get_state()) {
    ofCpu.set_state(ofNpu.get_state());
  }
  ~DefaultGeneratorSwap() {
    ofNpu.set_state(ofCpu.get_state());
    ofCpu.set_state(saved);
  }
  DefaultGeneratorSwap(const DefaultGeneratorSwap &) = delete;
  DefaultGeneratorSwap &operator=(const DefaultGeneratorSwap &) = delete;

private:
  at::Generator ofNpu;
  at::Generator ofCpu;
  at::Tensor saved;
};

/// One call of an operator on the host.
class HostCall {
public:
  HostCall(const c10::OperatorHandle &op, torch::jit::Stack *stack, bool inFloat32)
      : op(op), schema(op.schema()), stack(stack), inFloat32(inFloat32) {}

  void run() {
    TORCH_CHECK_NOT_IMPLEMENTED(
        op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), schema.operator_name(),
        " is not there on simulated NPUs, as torch has no ", "kernel of it for the CPU");
    size_t first = stack->size() - schema.arguments().size();
    findDevice(first);
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      translate((*stack)[first + i], schema.arguments()[i]);
    }
    std::optional<DefaultGeneratorSwap> swap;
    if (!hasGenerator && op.hasTag(at::Tag::nondeterministic_seeded)) {
      swap.emplace(index);
    }
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    for (const Widened &widened : widenedOutputs) {
      if (widened.narrow.sizes() != widened.wide.sizes()) {
        widened.narrow.resize_(widened.wide.sizes());
      }
      widened.narrow.copy_(widened.wide);
    }
    for (const at::Tensor &tensor : written) {
      aliases.writeBack(tensor);
    }
    for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
      translateResult((*stack)[i]);
    }
  }

private:
  struct Widened {
    at::Tensor narrow;
    at::Tensor wide;
  };

  /// Finds the NPU of the call, and that its arguments are on one.
  void findDevice(size_t first) {
    bool found = false;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::IValue &value = (*stack)[first + i];
      const c10::Argument &argument = schema.arguments()[i];
      visitTensors(value, [&](const at::Tensor &tensor) {
        if (isReduced(tensor.scalar_type())) {
          hasOtherFloat = hasOtherFloat || (hasReduced && tensor.scalar_type() != reduced);
          hasReduced = true;
          reduced = tensor.scalar_type();
        } else if (tensor.is_floating_point()) {
          hasOtherFloat = true;
        }
        if (!isNpu(tensor)) {
          return;
        }
        TORCH_CHECK(
            !found || tensor.device().index() == index,
            "Expected all tensors to be on the same device, but found at least two devices, npu:",
            static_cast<int>(index), " and ", tensor.device(), "! (argument ", argument.name(),
            " of ", schema.operator_name(), ")");
        index = tensor.device().index();
        found = true;
      });
      if (!found && value.isDevice() && value.toDevice().type() == kNpu) {
        index = resolveDevice(value.toDevice().index());
      }
      hasGenerator = hasGenerator || isGeneratorArgument(argument);
    }
    if (index < 0) {
      index = currentDevice();
    }
  }

  template <typename Visitor> static void visitTensors(const c10::IValue &value, Visitor visit) {
    auto visitDefined = [&](const at::Tensor &tensor) {
      if (tensor.defined()) {
        visit(tensor);
      }
    };
    if (value.isTensor()) {
      visitDefined(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor &tensor : value.toTensorVector()) {
        visitDefined(tensor);
      }
    } else if (value.isOptionalTensorList()) {
      for (const auto &tensor : value.toOptionalTensorVector()) {
        if (tensor) {
          visitDefined(*tensor);
        }
      }
    }
  }

  void translate(c10::IValue &value, const c10::Argument &argument) {
    if (value.isTensor()) {
      value = toHost(value.toTensor(), argument);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> hosts;
      for (const at::Tensor &tensor : value.toTensorVector()) {
        hosts.push_back(toHost(tensor, argument));
      }
      value = std::move(hosts);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> hosts;
      for (const auto &tensor : value.toOptionalTensorVector()) {
        hosts.push_back(tensor ? std::optional(toHost(*tensor, argument)) : std::nullopt);
      }
      value = std::move(hosts);
    } else if (value.isDevice()) {
      if (value.toDevice().type() == kNpu) {
        value = c10::Device(c10::kCPU);
      }
    } else if (value.isGenerator()) {
      const at::Generator &generator = value.toGenerator();
      TORCH_CHECK(generator.device() == c10::Device(kNpu, index),
                  "Expected a generator of npu:", static_cast<int>(index), ", got one of ",
                  generator.device());
      value = hostGenerator(generator);
    } else if (value.isNone() && isGeneratorArgument(argument)) {
      value = hostGenerator(defaultGenerator(index));
    }
  }

  at::Tensor toHost(const at::Tensor &tensor, const c10::Argument &argument) {
    if (!tensor.defined()) {
      return tensor;
    }
    const bool writes = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (!isNpu(tensor)) {
      TORCH_CHECK(
          tensor.is_cpu() && !writes && (tensor.dim() == 0 || takesHostTensors(schema.name())),
          "Expected all tensors to be on the same device, but found at least two devices, npu:",
          static_cast<int>(index), " and ", tensor.device(), "! (argument ", argument.name(),
          " of ", schema.operator_name(), ")");
      return tensor;
    }
    at::Tensor host = aliases.toHost(tensor);
    if (writes) {
      written.push_back(tensor);
    }
    // Mixed dtypes are left as they are: the CPU's kernel says what is wrong with them.
    if (!inFloat32 || !hasReduced || hasOtherFloat || !isReduced(tensor.scalar_type())) {
      return host;
    }
    at::Tensor wide = host.to(at::kFloat);
    if (writes) {
      widenedOutputs.push_back({host, wide});
    }
    return wide;
  }

  void translateResult(c10::IValue &value) {
    if (value.isTensor()) {
      value = toNpu(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> results;
      for (const at::Tensor &tensor : value.toTensorVector()) {
        results.push_back(toNpu(tensor));
      }
      value = std::move(results);
    }
  }

  at::Tensor toNpu(const at::Tensor &host) {
    for (const Widened &widened : widenedOutputs) {
      if (widened.wide.is_same(host)) {
        return aliases.toNpu(widened.narrow, index);
      }
    }
    if (inFloat32 && hasReduced && !hasOtherFloat && host.defined() &&
        host.scalar_type() == at::kFloat) {
      return aliases.toNpu(host.to(reduced), index);
    }
    return aliases.toNpu(host, index);
  }

  const c10::OperatorHandle &op;
  const c10::FunctionSchema &schema;
  torch::jit::Stack *stack;
  const bool inFloat32;

  c10::DeviceIndex index = -1;
  bool hasGenerator = false;
  bool hasReduced = false;
  bool hasOtherFloat = false;
  c10::ScalarType reduced = at::kHalf;
  HostAliases aliases;
  c10::SmallVector<at::Tensor, 2> written;
  c10::SmallVector<Widened, 1> widenedOutputs;
};

} // namespace

void runOnHost(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  HostCall(op, stack, /*inFloat32=*/false).run();
}

void runOnHostInFloat32(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  HostCall(op, stack, /*inFloat32=*/true).run();
}

} // namespace tdist::npu
