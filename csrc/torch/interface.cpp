//===- interface.cpp - What Python calls
//---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "generator.h"
#include "host_alias.h"
#include "memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <atomic>

namespace tdist::npu {
namespace {

using Release = void (*)(int64_t token);
std::atomic<Release> releaseToken{nullptr};

/// Owns a token of Python's for as long as a tensor over foreign memory lives.
struct Token {
  int64_t value;

  static void destroy(void *context) {
    auto *token = static_cast<Token *>(context);
    if (Release release = releaseToken) {
      release(token->value);
    }
    delete token;
  }
};

/// A tensor on NPU `index` over memory that somebody else owns: it cannot be resized beyond it.
/// `token` goes to the function that tdist_npu_on_release has set when the memory is no longer
/// used.
at::Tensor fromAddress(int64_t address, at::IntArrayRef size, at::IntArrayRef stride,
                       c10::ScalarType dtype, int64_t index, int64_t token) {
  auto *pointer = reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr)
  c10::Device device(kNpu, resolveDevice(static_cast<c10::DeviceIndex>(index)));
  size_t bytes =
      at::detail::computeStorageNbytes(size, stride, c10::scalarTypeToTypeMeta(dtype).itemsize());
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                       c10::DataPtr(pointer, new Token{token}, &Token::destroy, device), nullptr,
                       /*resizable=*/false);
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return result;
}

/// The host alias of a tensor on npu: shares its memory and keeps it alive.
at::Tensor hostAlias(const at::Tensor &tensor) {
  TORCH_CHECK(isNpu(tensor), "expected a tensor on npu, got one on ", tensor.device());
  return HostAliases().toHost(tensor);
}

/// A tensor on NPU `index` that shares the memory of `host`, a tensor of the CPU, and keeps it
/// alive.
at::Tensor fromHost(const at::Tensor &host, int64_t index) {
  TORCH_CHECK(host.is_cpu(), "expected a tensor on cpu, got one on ", host.device());
  return HostAliases().toNpu(host, resolveDevice(static_cast<c10::DeviceIndex>(index)));
}

TORCH_LIBRARY(triton_dist_npu, m) {
  m.def("from_address(int address, SymInt[] size, SymInt[] stride, ScalarType dtype, int index, "
        "int token) -> Tensor",
        &fromAddress);
  m.def("host_alias(Tensor tensor) -> Tensor", &hostAlias);
  m.def("from_host(Tensor host, int index) -> Tensor", &fromHost);
  m.def("default_generator(int index) -> Generator?",
        [](int64_t index) { return defaultGenerator(static_cast<c10::DeviceIndex>(index)); });
}

} // namespace
} // namespace tdist::npu

extern "C" {

/// Sets how many NPUs this process has, 1 to 127.
void tdist_npu_set_count(int32_t count) {
  tdist::npu::setDeviceCount(static_cast<c10::DeviceIndex>(count));
}

/// Sets what is called with the token of a tensor over foreign memory when that is no longer used;
/// null for nothing, as when the interpreter ends.
void tdist_npu_on_release(void (*release)(int64_t token)) { tdist::npu::releaseToken = release; }
}
