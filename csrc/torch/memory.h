//===- memory.h - Memory of the simulated NPUs
//-------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// A simulated NPU's memory is memory of the host: the address in a tensor's data_ptr() is one that
// kernels and the CPU's operators can use as it is.
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_MEMORY_H
#define TDIST_TORCH_MEMORY_H

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace tdist::npu {

/// Allocator of the device npu: zero or more bytes on the current NPU, aligned to 64 bytes.
c10::Allocator *deviceAllocator();

/// Allocator of pinned host memory: plain memory that isPinned knows.
c10::Allocator *pinnedAllocator();
bool isPinned(const void *pointer);

/// The memory of `host`, a storage of the CPU, as memory of NPU `index`; keeps `host` alive.
c10::DataPtr adoptHostStorage(c10::Storage host, c10::DeviceIndex index);

} // namespace tdist::npu

#endif // TDIST_TORCH_MEMORY_H
