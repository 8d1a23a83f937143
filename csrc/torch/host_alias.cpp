//===- host_alias.cpp - Two torch tensors over the same bytes
//----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "host_alias.h"

#include "launches.h"
#include "memory.h"

#include <c10/core/CPUAllocator.h>

namespace tdist::npu {
namespace {

/// A tensor with the geometry and flags of `like` over `storage`.
at::Tensor makeLike(const at::Tensor &like, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl *impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) {
    impl->_set_conj(true);
  }
  if (like.is_neg()) {
    impl->_set_neg(true);
  }
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return result;
}

/// The memory of `npu` as memory of the CPU; keeps `npu` alive.
c10::DataPtr hostPointer(const c10::Storage &npu) {
  auto *owner = new c10::Storage(npu);
  return {npu.mutable_data(), owner,
          [](void *context) { delete static_cast<c10::Storage *>(context); },
          c10::Device(c10::kCPU)};
}

} // namespace

c10::Storage HostAliases::hostStorage(const c10::Storage &npu) {
  for (const StoragePair &pair : storages) {
    if (pair.npu.is_alias_of(npu)) {
      return pair.host;
    }
  }
  c10::Storage host(c10::Storage::use_byte_size_t(), npu.nbytes(), hostPointer(npu),
                    c10::GetCPUAllocator(), npu.resizable());
  storages.push_back({npu, host});
  return host;
}

c10::Storage HostAliases::npuStorage(const c10::Storage &host, c10::DeviceIndex index) {
  for (const StoragePair &pair : storages) {
    if (pair.host.is_alias_of(host)) {
      return pair.npu;
    }
  }
  c10::Storage npu(c10::Storage::use_byte_size_t(), host.nbytes(), adoptHostStorage(host, index),
                   deviceAllocator(), host.resizable());
  storages.push_back({npu, host});
  return npu;
}

at::Tensor HostAliases::toHost(const at::Tensor &tensor) {
  for (const TensorPair &pair : tensors) {
    if (pair.npu.is_same(tensor)) {
      return pair.host;
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == c10::kStrided && !tensor.is_nested(),
                              "a tensor on ", tensor.device(), " must be strided: the layout ",
                              tensor.layout(), " and nested tensors exist on cpu only");
  waitForMemory(tensor.storage());
  at::Tensor host = makeLike(tensor, hostStorage(tensor.storage()), c10::DispatchKey::CPU);
  tensors.push_back({tensor, host});
  return host;
}

at::Tensor HostAliases::toNpu(const at::Tensor &host, c10::DeviceIndex index) {
  if (!host.defined() || !host.is_cpu()) {
    return host;
  }
  for (const TensorPair &pair : tensors) {
    if (pair.host.is_same(host)) {
      return pair.npu;
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(host.layout() == c10::kStrided && !host.is_nested(),
                              "the result would be a tensor of layout ", host.layout(),
                              " on npu, which exists on cpu only: move the arguments with .cpu()");
  return makeLike(host, npuStorage(host.storage(), index), c10::DispatchKey::PrivateUse1);
}

void HostAliases::writeBack(const at::Tensor &tensor) {
  const at::Tensor host = toHost(tensor);
  c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
  const c10::Storage &npu = tensor.storage();
  if (!hostStorage(npu).is_alias_of(host.storage())) {
    impl->set_storage_keep_dtype(npuStorage(host.storage(), tensor.device().index()));
  } else if (host.storage().data() != npu.data() || host.storage().nbytes() != npu.nbytes()) {
    // The operator has grown the storage: whoever shares it sees the new memory, as on the CPU.
    size_t bytes = host.storage().nbytes();
    c10::Storage grown(c10::Storage::use_byte_size_t(), bytes,
                       host.storage().set_data_ptr(c10::DataPtr()), c10::GetCPUAllocator(), true);
    npu.unsafeGetStorageImpl()->set_data_ptr(
        adoptHostStorage(std::move(grown), tensor.device().index()));
    npu.unsafeGetStorageImpl()->set_nbytes(bytes);
    // Another alias of the same storage is to find that nothing is left to do.
    host.storage().set_data_ptr(hostPointer(npu));
  }
  if (impl->sizes() != host.sizes() || impl->strides() != host.strides() ||
      impl->storage_offset() != host.storage_offset()) {
    impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  }
  if (host.is_conj() != tensor.is_conj()) {
    impl->_set_conj(host.is_conj());
  }
  if (host.is_neg() != tensor.is_neg()) {
    impl->_set_neg(host.is_neg());
  }
}

} // namespace tdist::npu
