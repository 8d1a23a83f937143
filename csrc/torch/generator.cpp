//===- generator.cpp - Generators of the device npu
//--------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>

#include <deque>
#include <mutex>
#include <utility>

namespace tdist::npu {
namespace {

/// A generator of an NPU: the CPU's operators draw from the CPU generator inside.
class NpuGenerator final : public c10::GeneratorImpl {
public:
  NpuGenerator(c10::DeviceIndex index, at::Generator host)
      : GeneratorImpl(c10::Device(kNpu, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(std::move(host)) {}

  const at::Generator &inner() const { return host; }

  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host.set_offset(offset); }
  uint64_t get_offset() const override { return host.get_offset(); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return host.seed(); }
  void set_state(const c10::TensorImpl &state) override {
    host.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }

private:
  NpuGenerator *clone_impl() const override {
    return new NpuGenerator(device().index(), host.clone());
  }

  at::Generator host;
};

} // namespace

const at::Generator &defaultGenerator(c10::DeviceIndex index) {
  static std::mutex mutex;
  // Never destroyed: torch keeps no count of who holds a reference to a default generator.
  // It grows in place: a rank that is kept for another test may see more NPUs there.
  static auto *generators = new std::deque<at::Generator>;
  index = resolveDevice(index);
  std::lock_guard lock(mutex);
  while (std::cmp_less_equal(generators->size(), index)) {
    generators->push_back(newGenerator(static_cast<c10::DeviceIndex>(generators->size())));
  }
  return (*generators)[index];
}

at::Generator newGenerator(c10::DeviceIndex index) {
  return at::make_generator<NpuGenerator>(resolveDevice(index), at::detail::createCPUGenerator());
}

at::Generator hostGenerator(const at::Generator &generator) {
  return static_cast<NpuGenerator *>(generator.unsafeGetGeneratorImpl())->inner();
}

} // namespace tdist::npu
