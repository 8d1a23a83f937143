//===- atomics.cpp - Remote atomic operations, for Ascend950 --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "shmem_device.h"

namespace {

/// How AscendNPU-IR passes a memref of one dimension.
template <class Element> struct MemRef {
  __gm__ Element *allocated;
  __gm__ Element *aligned;
  int64_t offset;
  int64_t sizes[1];
  int64_t strides[1];
};

} // namespace

extern "C" {

/// notify(..., sig_op="add") on a word of 64 bits, which A2 and A3 lack.
__aicore__ __attribute__((always_inline)) void
_mlir_ciface_aclshmem_int64_atomic_add(MemRef<int64_t> *word, int64_t value, int32_t pe) {
  aclshmem_int64_atomic_add(word->aligned + word->offset, value, pe);
}

} // extern "C"
