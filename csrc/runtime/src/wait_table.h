// A PE's table of waits: written by its process, read by every process of the job.
#pragma once

#include "tdist_sim.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace tdist::sim {

/// One record behind its sequence number. Lives in shared memory, all zero at first.
struct WaitSlot {
  static constexpr std::size_t kWords = sizeof(tdist_wait_record) / sizeof(std::uint64_t);

  std::uint64_t sequence; // odd while the record is written
  std::uint64_t words[kWords];

  void write(const tdist_wait_record &record) noexcept;
  void clear() noexcept;
  /// A consistent copy; kind TDIST_WAIT_NONE if there is none, or the writer is for ever inside.
  [[nodiscard]] tdist_wait_record read() noexcept;
};
static_assert(sizeof(WaitSlot) == 512 && sizeof(tdist_wait_record) % sizeof(std::uint64_t) == 0);

/// Copies `text` into a fixed field; of one that is too long the end is kept, where names differ.
void copyText(std::span<char> field, std::string_view text) noexcept;

/// CLOCK_MONOTONIC, which all processes of a host share.
std::int64_t monotonicNanoseconds() noexcept;

/// Hands out the slots of the own PE's table to the waits of this process.
class WaitTable {
public:
  WaitTable(std::span<WaitSlot> slots, std::uint64_t &unlisted);

  /// nullptr when all are taken; the wait then counts as not listed.
  [[nodiscard]] WaitSlot *acquire() noexcept;
  /// Clears the slot and takes it back; nullptr ends a wait that is not listed.
  void release(WaitSlot *slot) noexcept;

private:
  std::mutex mutex;
  std::vector<WaitSlot *> unused;
  std::uint64_t &unlisted; // in the control area
};

} // namespace tdist::sim
