//===- by_address.cpp - Functions with a result, for Ascend950 ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

// AscendNPU-IR's compiler for Ascend950 cannot call a function that takes a memref and has a
// result, so these take addresses in bytes. Scope and semantic of a wait have no meaning of their
// own here: aclshmem waits with the strongest.

#include "shmem_device.h"

namespace {

// One slot of a wait: the NPU does not keep two cores' writes to one line coherent.
constexpr int64_t slotBytes = 64;
constexpr int32_t equal = 0; // ACLSHMEM_CMP_EQ

template <class Word> __aicore__ inline __gm__ Word *at(int64_t address) {
  return reinterpret_cast<__gm__ Word *>(address);
}

} // namespace

extern "C" {

__aicore__ __attribute__((always_inline)) int32_t tdist_wait_i32(int64_t address, int32_t count,
                                                                 int32_t value, int32_t /*scope*/,
                                                                 int32_t /*semantic*/) {
  for (int32_t slot = 0; slot < count; ++slot)
    aclshmem_int32_wait_until(at<int32_t>(address + slot * slotBytes), equal, value);
  return 0;
}

__aicore__ __attribute__((always_inline)) int32_t tdist_wait_i64(int64_t address, int32_t count,
                                                                 int64_t value, int32_t /*scope*/,
                                                                 int32_t /*semantic*/) {
  for (int32_t slot = 0; slot < count; ++slot)
    aclshmem_int64_wait_until(at<int64_t>(address + slot * slotBytes), equal, value);
  return 0;
}

__aicore__ __attribute__((always_inline)) int32_t tdist_signal_wait_until(int64_t address,
                                                                          int32_t comparison,
                                                                          int32_t value) {
  return aclshmem_signal_wait_until(at<int32_t>(address), comparison, value);
}

/// How many elements of `size` bytes lie between an address here and the same one on `pe`.
__aicore__ __attribute__((always_inline)) int64_t tdist_delta(int64_t address, int32_t pe,
                                                              int32_t size) {
  return (reinterpret_cast<int64_t>(aclshmem_ptr(at<void>(address), pe)) - address) / size;
}

/// A 0 that the compiler of the kernel does not know, so that what it is added to waits for the
/// token.
__aicore__ __attribute__((always_inline)) int64_t tdist_zero(int32_t /*token*/) { return 0; }

} // extern "C"
