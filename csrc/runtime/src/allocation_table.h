// Which allocations of a PE's symmetric heap are live, where the other PEs can read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tdist::sim {

/// One live allocation; all zero while there is none. Written by the PE that owns it alone, whose
/// heap makes its allocations in the same order as the others, so that a slot of one PE stands for
/// the same object as that slot of another.
struct AllocationSlot {
  std::uint64_t beginPlusOne; // offset in the heap, bytes; 0: the slot is free
  std::uint64_t end;
  std::int64_t since; // monotonicNanoseconds() when it was made

  // A reader that finds a beginning finds what was stored before it: release and acquire. One that
  // comes while the slot is taken anew may see the new end with the old beginning; then the program
  // frees what another one uses, and either answer is right.
  void publish(std::int64_t begin, std::int64_t bytes, std::int64_t now) noexcept {
    std::atomic_ref(since).store(now, std::memory_order_relaxed);
    std::atomic_ref(end).store(static_cast<std::uint64_t>(begin + bytes),
                               std::memory_order_relaxed);
    std::atomic_ref(beginPlusOne)
        .store(static_cast<std::uint64_t>(begin) + 1, std::memory_order_release);
  }
  void withdraw() noexcept { std::atomic_ref(beginPlusOne).store(0, std::memory_order_release); }

  struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t since;

    [[nodiscard]] bool holds(std::int64_t offset, std::int64_t bytes) const noexcept {
      return begin <= offset && offset + bytes <= end;
    }
  };

  /// All zero while the slot is free.
  [[nodiscard]] Range range() noexcept {
    const std::uint64_t begin = std::atomic_ref(beginPlusOne).load(std::memory_order_acquire);
    if (begin == 0) {
      return {};
    }
    return {.begin = static_cast<std::int64_t>(begin - 1),
            .end = static_cast<std::int64_t>(std::atomic_ref(end).load(std::memory_order_relaxed)),
            .since = std::atomic_ref(since).load(std::memory_order_relaxed)};
  }
};

} // namespace tdist::sim
