// Which parts of this PE's symmetric heap are allocated.
#pragma once

#include "allocation_table.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace tdist::sim {

/// First fit on offsets: the same calls in the same order give the same offsets on every PE.
/// All members may be called from any thread.
class Heap {
public:
  static constexpr std::int64_t kAlignment = 64;

  /// A part of the heap that somebody asked for.
  struct Allocation {
    std::int64_t offset;
    std::int64_t bytes;
    /// Where it is published; none where the table was full.
    std::optional<std::size_t> slot;
  };

  /// The heap is the `bytes` at `fileOffset` of memfd `fd`, which stays the caller's. Live
  /// allocations are published in `table`, all zero at first.
  Heap(int fd, std::int64_t fileOffset, std::int64_t bytes, std::span<AllocationSlot> table);

  /// Offset of a new allocation, with its pages reserved. Throws Error.
  std::int64_t allocate(std::int64_t bytes, std::int64_t alignment);
  /// Throws Error unless an allocation begins at `offset`.
  void release(std::int64_t offset);
  [[nodiscard]] std::int64_t used() const;

  /// The live allocation that has all of [offset, offset + bytes), if there is one.
  [[nodiscard]] std::optional<Allocation> find(std::int64_t offset, std::int64_t bytes) const;
  /// Why it is not: "is past the end of ...".
  [[nodiscard]] std::string whyNotLive(std::int64_t offset, std::int64_t bytes) const;

private:
  struct Block {
    std::int64_t bytes;  // asked for
    std::int64_t extent; // taken: rounded up to kAlignment
    std::optional<std::size_t> slot;
  };
  using Ranges = std::map<std::int64_t, std::int64_t>; // begin -> end

  [[nodiscard]] std::atomic<std::size_t> &hintFor(std::int64_t offset) const noexcept;
  [[nodiscard]] Ranges::iterator findFree(std::int64_t extent, std::int64_t alignment,
                                          std::int64_t &offset);
  [[nodiscard]] std::string whyNoRoom(std::int64_t bytes) const;
  [[nodiscard]] std::optional<std::size_t> takeSlot();
  void reservePages(std::int64_t offset, std::int64_t extent) const;
  void dropPages(std::int64_t begin, std::int64_t end) const noexcept;

  const int fd;
  const std::int64_t fileOffset;
  const std::int64_t size;
  const std::span<AllocationSlot> table;
  // Slots in which find() has found an allocation lately; any number is right, but may help less.
  static constexpr std::size_t kHints = 64;
  mutable std::array<std::atomic<std::size_t>, kHints> hints{};
  mutable std::mutex mutex;
  std::map<std::int64_t, Block> live; // by offset
  Ranges unused;                      // never touching each other
  // The lowest free slot is taken, so that PEs which allocate alike use the same ones.
  std::set<std::size_t> returnedSlots;
  std::size_t slotsTaken = 0; // those from here on were never taken
  std::int64_t inUse = 0;
  std::int64_t highest = 0; // end of what has ever been allocated
};

} // namespace tdist::sim
