//===- memory.cpp - Allocators of the device npu
//-----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

#include "memory.h"

#include "device.h"
#include "launches.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace tdist::npu {
namespace {

using c10::CachingAllocator::Stat;

/// Bytes and allocations of each NPU, for torch.npu.memory_allocated() and its kin.
class Statistics {
public:
  void add(c10::DeviceIndex index, int64_t bytes) {
    std::lock_guard lock(mutex);
    devices[index].bytes.increase(bytes);
    devices[index].blocks.increase(1);
  }
  void remove(c10::DeviceIndex index, int64_t bytes) {
    std::lock_guard lock(mutex);
    devices[index].bytes.decrease(bytes);
    devices[index].blocks.decrease(1);
  }
  c10::CachingDeviceAllocator::DeviceStats of(c10::DeviceIndex index) {
    std::lock_guard lock(mutex);
    constexpr auto kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    for (auto *bytes : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                        &stats.requested_bytes}) {
      (*bytes)[kAggregate] = devices[index].bytes;
    }
    for (auto *blocks : {&stats.allocation, &stats.segment, &stats.active}) {
      (*blocks)[kAggregate] = devices[index].blocks;
    }
    return stats;
  }
  void resetAccumulated(c10::DeviceIndex index) {
    std::lock_guard lock(mutex);
    devices[index].bytes.reset_accumulated();
    devices[index].blocks.reset_accumulated();
  }
  void resetPeak(c10::DeviceIndex index) {
    std::lock_guard lock(mutex);
    devices[index].bytes.reset_peak();
    devices[index].blocks.reset_peak();
  }

private:
  struct OfDevice {
    Stat bytes;
    Stat blocks;
  };
  std::mutex mutex;
  std::array<OfDevice, std::numeric_limits<c10::DeviceIndex>::max() + 1> devices;
};

// Never destroyed: tensors that static objects hold are freed after any static of ours.
Statistics &statistics() {
  static auto *instance = new Statistics;
  return *instance;
}

/// Context of a DataPtr of the device npu: owns the host's memory and is counted.
struct Block {
  c10::DataPtr host;
  int64_t bytes;
  c10::DeviceIndex index;

  static c10::DataPtr make(c10::DataPtr host, size_t bytes, c10::DeviceIndex index) {
    void *address = host.get();
    auto *block = new Block{std::move(host), static_cast<int64_t>(bytes), index};
    statistics().add(index, static_cast<int64_t>(bytes));
    return {address, block, &destroy, c10::Device(kNpu, index)};
  }
  static void destroy(void *context);
  [[nodiscard]] bool isInUse() const { return npu::isInUse(host.get(), bytes); }
  void release() {
    statistics().remove(index, bytes);
    delete this;
  }
};

/// Blocks that nobody holds any more but launches that have not ended.
class Lingering {
public:
  void add(Block *block) {
    std::lock_guard lock(mutex);
    blocks.push_back(block);
    isEmpty = false;
  }
  void releaseEnded() {
    if (isEmpty) {
      return;
    }
    std::vector<Block *> ended;
    {
      std::lock_guard lock(mutex);
      const auto first = std::partition(blocks.begin(), blocks.end(),
                                        [](Block *block) { return block->isInUse(); });
      ended.assign(first, blocks.end());
      blocks.erase(first, blocks.end());
      isEmpty = blocks.empty();
    }
    for (Block *block : ended) {
      block->release();
    }
  }

private:
  std::mutex mutex;
  std::vector<Block *> blocks;
  std::atomic<bool> isEmpty = true; // for a look without the lock
};

// Never destroyed, as statistics().
Lingering &lingering() {
  static auto *instance = new Lingering;
  return *instance;
}

void Block::destroy(void *context) {
  auto *block = static_cast<Block *>(context);
  lingering().releaseEnded();
  if (block->isInUse()) {
    lingering().add(block);
  } else {
    block->release();
  }
}

c10::DataPtr allocateOnHost(size_t bytes, c10::DeviceIndex index) {
  try {
    return c10::GetCPUAllocator()->allocate(bytes);
  } catch (const c10::Error &) {
    C10_THROW_ERROR(OutOfMemoryError,
                    c10::str("npu:", static_cast<int>(index),
                             " is out of memory: tried to allocate ", bytes,
                             " bytes of the host's memory, which all simulated NPUs share"));
  }
}

struct NpuAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::DeviceIndex index = currentDevice();
    lingering().releaseEnded();
    if (bytes == 0) {
      return {nullptr, c10::Device(kNpu, index)};
    }
    return Block::make(allocateOnHost(bytes, index), bytes, index);
  }
  void copy_data(void *destination, const void *source, size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

  bool initialized() override { return true; }
  // Freed memory goes back to the host's allocator at once, so there is no cache to empty.
  void emptyCache(c10::MempoolId_t /*pool*/) override {}
  void recordStream(const c10::DataPtr & /*pointer*/, c10::Stream /*stream*/) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    lingering().releaseEnded();
    return statistics().of(resolveDevice(index));
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    statistics().resetAccumulated(resolveDevice(index));
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    statistics().resetPeak(resolveDevice(index));
  }
  /// Free and total bytes of the host, which all its simulated NPUs share.
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex /*index*/) override {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return {static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * page,
            static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page};
  }
};

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void *address = host.get();
    if (address == nullptr) {
      return host;
    }
    {
      std::lock_guard lock(mutex);
      ends[static_cast<char *>(address)] = static_cast<char *>(address) + bytes;
    }
    return {address, new c10::DataPtr(std::move(host)), &destroy, c10::Device(c10::kCPU)};
  }
  void copy_data(void *destination, const void *source, size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
  bool holds(const void *pointer) {
    std::lock_guard lock(mutex);
    auto next = ends.upper_bound(static_cast<const char *>(pointer));
    return next != ends.begin() && pointer < std::prev(next)->second;
  }

private:
  static void destroy(void *context);

  std::mutex mutex;
  std::map<const char *, const char *> ends;
};

PinnedAllocator &pinned() {
  static auto *instance = new PinnedAllocator;
  return *instance;
}

void PinnedAllocator::destroy(void *context) {
  auto *host = static_cast<c10::DataPtr *>(context);
  {
    std::lock_guard lock(pinned().mutex);
    pinned().ends.erase(static_cast<const char *>(host->get()));
  }
  delete host;
}

NpuAllocator npuAllocator;
REGISTER_ALLOCATOR(kNpu, &npuAllocator);

} // namespace

c10::Allocator *deviceAllocator() { return &npuAllocator; }

c10::Allocator *pinnedAllocator() { return &pinned(); }

bool isPinned(const void *pointer) { return pinned().holds(pointer); }

c10::DataPtr adoptHostStorage(c10::Storage host, c10::DeviceIndex index) {
  size_t bytes = host.nbytes();
  // Not data_ptr(): a lazily cloned storage must become one of its own before it changes device.
  void *address = host.mutable_data();
  auto *owner = new c10::Storage(std::move(host));
  c10::DataPtr pointer(
      address, owner, [](void *context) { delete static_cast<c10::Storage *>(context); },
      c10::Device(c10::kCPU));
  return Block::make(std::move(pointer), bytes, index);
}

} // namespace tdist::npu
