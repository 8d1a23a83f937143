//===- hooks.cpp - What torch asks an accelerator: devices, generators, pinned memory
//----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "device.h"
#include "generator.h"
#include "launches.h"
#include "memory.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

namespace tdist::npu {
namespace {

struct NpuHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return npu::deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return npu::deviceCount(); }

  void setCurrentDevice(c10::DeviceIndex index) const override { npu::exchangeDevice(index); }
  c10::DeviceIndex getCurrentDevice() const override { return currentDevice(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return npu::exchangeDevice(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return npu::exchangeDevice(index);
  }

  bool isPinnedPtr(const void *pointer) const override { return isPinned(pointer); }
  c10::Allocator *getPinnedMemoryAllocator() const override { return pinnedAllocator(); }
  // All NPUs of a process are in the host's memory, where an address does not tell whose it is.
  c10::Device getDeviceFromPtr(void * /*pointer*/) const override {
    return {kNpu, currentDevice()};
  }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override {
    return defaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return newGenerator(index);
  }

  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    c10::DeviceGuard guard(storage.device());
    waitForMemory(storage);
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};

// Never destroyed: torch asks them until the process ends.
[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new NpuHooks);
  return true;
}();

} // namespace
} // namespace tdist::npu
