// How often a PE's host has made calls that it makes together with others, outside of this library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

namespace tdist::sim {

/// A count under a key. Lives in shared memory, all zero while it is free; never freed again.
struct CountSlot {
  std::uint64_t key;   // plus one
  std::uint64_t count; // only grows
};

/// The own PE's counts; any PE reads those of any other (countIn).
///
/// A count is stored before the call begins that it stands for. All accesses are seq_cst, and so
/// are those to the words by which a PE tells what its host does (DeadlockWatch): who has read
/// there that another PE waits finds at least the counts from before that wait.
class CountTable {
public:
  explicit CountTable(std::span<CountSlot> slots) : slots(slots) {}

  /// Sets a count; false: there is no room for its key.
  bool set(std::uint64_t key, std::uint64_t count) noexcept;

  /// The count under a key, if there is one. `isFull`: there may be one that found no room.
  static std::optional<std::uint64_t> countIn(std::span<CountSlot> slots, std::uint64_t key,
                                              bool &isFull) noexcept;

private:
  std::mutex mutex;
  std::span<CountSlot> slots;
};

} // namespace tdist::sim
