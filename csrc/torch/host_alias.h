//===- host_alias.h - An NPU's tensors as tensors of the CPU, and back
//-------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// A simulated NPU computes with the CPU's operators. No element is copied for that: a tensor on npu
// and its host alias are two torch tensors over the same bytes.
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_HOST_ALIAS_H
#define TDIST_TORCH_HOST_ALIAS_H

#include "device.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace tdist::npu {

inline bool isNpu(const at::Tensor &tensor) {
  return tensor.defined() && tensor.device().type() == kNpu;
}

/// The host aliases made for one operator call. Tensors that share a storage have aliases that
/// share one, so that the CPU's operators see which of their arguments overlap.
class HostAliases {
public:
  /// The host alias of `tensor`, which must be on npu; the same one if asked again. Waits for the
  /// launches of the current stream that still use the memory. It keeps the memory alive, for
  /// operators that go on after the call.
  at::Tensor toHost(const at::Tensor &tensor);

  /// The tensor on NPU `index` for what an operator returned: the very tensor whose alias it is, a
  /// view of it, or a new tensor that takes over the host tensor's memory.
  at::Tensor toNpu(const at::Tensor &host, c10::DeviceIndex index);

  /// Gives `tensor` the sizes, strides and memory that its alias has got from an operator that
  /// writes.
  void writeBack(const at::Tensor &tensor);

private:
  struct TensorPair {
    at::Tensor npu;
    at::Tensor host;
  };
  struct StoragePair {
    c10::Storage npu;
    c10::Storage host;
  };
  c10::Storage hostStorage(const c10::Storage &npu);
  c10::Storage npuStorage(const c10::Storage &host, c10::DeviceIndex index);

  c10::SmallVector<TensorPair, 6> tensors;
  c10::SmallVector<StoragePair, 6> storages;
};

} // namespace tdist::npu

#endif // TDIST_TORCH_HOST_ALIAS_H
