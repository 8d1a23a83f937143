//===- device.cpp - Guard of the device npu: current device, streams, events
//-------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "device.h"
#include "launches.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <limits>

namespace tdist::npu {
namespace {

constexpr size_t kMaxDevices = std::numeric_limits<c10::DeviceIndex>::max();

std::atomic<c10::DeviceIndex> count{0};
thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kMaxDevices + 1> currentStreams{};

/// What a torch.Event is here.
struct Event {
  Mark mark;
  bool timed = false;
};

struct NpuGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNpu; }

  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kNpu, "expected an NPU, got device ", device);
    return {kNpu, npu::exchangeDevice(device.index())};
  }
  c10::Device getDevice() const override { return {kNpu, current}; }
  void setDevice(c10::Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) {
      current = device.index();
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return npu::deviceCount(); }

  c10::Stream getStream(c10::Device device) const override {
    c10::DeviceIndex index = resolveDevice(device.index());
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNpu, index), currentStreams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kNpu, resolveDevice(device.index())));
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    static std::atomic<c10::StreamId> last{0};
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kNpu, resolveDevice(device.index())),
                       ++last);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*isHighPriority*/) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream previous = getStream(stream.device());
    currentStreams[stream.device_index()] = stream.id();
    return previous;
  }

  void record(void **event, const c10::Stream &stream, c10::DeviceIndex /*index*/,
              c10::EventFlag flag) const override {
    if (*event == nullptr) {
      *event = new Event;
    }
    auto *recorded = static_cast<Event *>(*event);
    recorded->mark.record(stream);
    recorded->timed = flag == c10::EventFlag::BACKEND_DEFAULT;
  }
  void destroyEvent(void *event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event *>(event);
  }
  double elapsedTime(void *first, void *second, c10::DeviceIndex /*index*/) const override {
    TORCH_CHECK(first != nullptr && second != nullptr,
                "elapsed_time: both events must have been recorded");
    auto *start = static_cast<Event *>(first);
    auto *end = static_cast<Event *>(second);
    TORCH_CHECK(start->timed && end->timed,
                "elapsed_time: both events must be made with enable_timing=True");
    start->mark.wait();
    end->mark.wait();
    constexpr double kMillisecond = 1e6; // nanoseconds
    return static_cast<double>(end->mark.reachedAt() - start->mark.reachedAt()) / kMillisecond;
  }

  void block(void *event, const c10::Stream &stream) const override {
    if (event != nullptr) {
      static_cast<Event *>(event)->mark.block(stream);
    }
  }
  bool queryEvent(void *event) const override {
    return event == nullptr || static_cast<Event *>(event)->mark.reachedAt() != 0;
  }
  void synchronizeEvent(void *event) const override {
    if (event != nullptr) {
      static_cast<Event *>(event)->mark.wait();
    }
  }
  bool queryStream(const c10::Stream &stream) const override { return isFinished(stream); }
  void synchronizeStream(const c10::Stream &stream) const override { waitForStream(stream); }
  void synchronizeDevice(c10::DeviceIndex /*index*/) const override { waitForDevice(); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NpuGuard);

} // namespace

c10::DeviceIndex deviceCount() noexcept { return count; }

void setDeviceCount(c10::DeviceIndex newCount) noexcept { count = newCount; }

c10::DeviceIndex currentDevice() noexcept { return current; }

c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) {
  c10::DeviceIndex previous = current;
  current = resolveDevice(index);
  return previous;
}

c10::DeviceIndex resolveDevice(c10::DeviceIndex index) {
  if (index < 0) {
    return current;
  }
  TORCH_CHECK(index < count, "there is no npu:", static_cast<int>(index), ": this process has ",
              static_cast<int>(count.load()),
              " simulated NPU(s), numbered from 0 (environment variable TRITON_DIST_SIM_NPUS)");
  return index;
}

} // namespace tdist::npu

extern "C" {

/// When an event of torch that has been reached was, in nanoseconds of CLOCK_MONOTONIC.
int64_t tdist_npu_event_ns(const void *event) {
  return static_cast<const tdist::npu::Event *>(event)->mark.reachedAt();
}
}
