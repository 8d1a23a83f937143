//===- autocast.cpp - torch.autocast("npu")
//------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// Under autocast, some operators get their arguments in the 16-bit type that was asked for, some
// get them in float32, and some in the widest type among them: the same ones as on torch's other
// accelerators.
//
//===---------------------------------------------------------------------------------------------===//

#include "host_alias.h"

#include <torch/library.h>

#include <array>

// As torch declares them: its header for these two takes six seconds to compile.
namespace at::autocast {
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
TORCH_API Tensor cached_cast(at::ScalarType to_type, const Tensor &arg,
                             c10::DeviceType device_type);
} // namespace at::autocast

namespace tdist::npu {
namespace {

enum class Policy { kReduced, kFloat32, kWidest };

constexpr auto kReducedOperators = std::to_array<const char *>({
    "_convolution",
    "_convolution.deprecated",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "einsum",
    "mm",
    "mv",
    "linalg_vecdot",
    "linear",
    "addbmm",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "linalg_multi_dot",
    "scaled_dot_product_attention",
});
constexpr auto kFloat32Operators = std::to_array<const char *>({
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "pow.Scalar",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "rms_norm",
    "group_norm",
    "frobenius_norm.dim",
    "nuclear_norm",
    "nuclear_norm.dim",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "nll_loss2d",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "binary_cross_entropy_with_logits",
    "dist",
    "pdist",
    "cdist",
    "renorm",
    "logsumexp",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "prod",
    "prod.dim_int",
    "softmax.int",
    "log_softmax.int",
    "cumprod",
    "cumsum",
    "linalg_vector_norm",
    "linalg_matrix_norm",
    "linalg_matrix_norm.str_ord",
    "sum",
    "sum.dim_IntList",
});
constexpr auto kWidestOperators = std::to_array<const char *>({
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "vdot",
    "grid_sampler",
    "index_put",
    "tensordot",
    "scatter_add",
    "cat",
    "stack",
});

bool mayBeCast(const at::Tensor &tensor) {
  return isNpu(tensor) && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

at::ScalarType target(Policy policy, const torch::jit::Stack &stack, size_t first) {
  if (policy == Policy::kFloat32) {
    return at::kFloat;
  }
  auto isFloat32 = [](const at::Tensor &tensor) {
    return mayBeCast(tensor) && tensor.scalar_type() == at::kFloat;
  };
  for (size_t i = first; policy == Policy::kWidest && i < stack.size(); ++i) {
    if (stack[i].isTensor() && isFloat32(stack[i].toTensor())) {
      return at::kFloat;
    }
    if (stack[i].isTensorList()) {
      for (const at::Tensor &tensor : stack[i].toTensorVector()) {
        if (isFloat32(tensor)) {
          return at::kFloat;
        }
      }
    }
  }
  return at::autocast::get_autocast_dtype(kNpu);
}

template <Policy policy>
void castArguments(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::AutocastPrivateUse1);
  size_t first = stack->size() - op.schema().arguments().size();
  at::ScalarType dtype = target(policy, *stack, first);
  auto cast = [&](const at::Tensor &tensor) {
    return mayBeCast(tensor) ? at::autocast::cached_cast(dtype, tensor, kNpu) : tensor;
  };
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue &value = (*stack)[i];
    if (value.isTensor()) {
      value = cast(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor &tensor : value.toTensorVector()) {
        tensors.push_back(cast(tensor));
      }
      value = std::move(tensors);
    }
  }
  op.callBoxed(stack);
}

template <Policy policy, size_t count>
void implement(torch::Library &library, const std::array<const char *, count> &operators) {
  for (const char *name : operators) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&castArguments<policy>>());
  }
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  implement<Policy::kReduced>(m, kReducedOperators);
  implement<Policy::kFloat32>(m, kFloat32Operators);
  implement<Policy::kWidest>(m, kWidestOperators);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

} // namespace
} // namespace tdist::npu
