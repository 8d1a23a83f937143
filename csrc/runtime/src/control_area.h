// What a PE shares with the others besides its heap: the beginning of its memfd.
#pragma once

#include "allocation_table.h"
#include "count_table.h"
#include "doorbell.h"
#include "place_table.h"
#include "wait_table.h"
#include "write_table.h"

#include <cstddef>
#include <cstdint>

namespace tdist::sim {

/// All zero in a fresh memfd. Fields are accessed with std::atomic_ref; each group has cache lines
/// of its own, since other PEs poll some and write others.
struct ControlArea { // NOLINT(clang-analyzer-optin.performance.Padding): so are the cache lines
  static constexpr std::size_t kWaitSlots = 1024;
  static constexpr std::size_t kAllocationSlots = 4096;
  static constexpr std::size_t kPlaces = 1024;
  static constexpr std::size_t kCounts = 1024;
  static constexpr std::size_t kVerdictBytes = 1 << 16;
  static constexpr std::uint64_t kMagic = 0x7464697374'0006; // changes with the layout

  std::uint64_t magic; // stored last when the PE attaches
  std::uint64_t heapBytes;
  std::uint32_t rank;
  std::uint32_t worldSize;
  std::uint64_t strictSeed; // that of PE 0 counts

  alignas(64) Doorbell doorbell;
  alignas(64) std::uint64_t deviceBarrier; // how many barriers among PEs this one has entered
  alignas(64) std::uint64_t hostBarrier;   // the same, of its host
  // Odd: some program of this PE runs or can run, as far as its engine knows. Even: none can, until
  // a word that one waits for changes or the host launches another. Raised by one at each change.
  alignas(64) std::uint64_t engine;
  // What the host's thread does: a tdist_host_state in the low 8 bits, how often it has changed
  // above them.
  std::uint64_t host;
  // How often the host, while it waited, has found that what it waits for is not there.
  std::uint64_t looks;
  // Of PE 0: whether the job has a verdict, and what it is.
  alignas(64) std::uint64_t verdictState;
  char verdict[kVerdictBytes];
  alignas(64) std::uint64_t unlistedWaits; // waits that found no slot
  alignas(64) WaitSlot waits[kWaitSlots];
  alignas(64) WaitSlot finished; // the launch that has ended last: its kernel, and when it ended
  alignas(64) CountSlot counts[kCounts];
  alignas(64) AllocationSlot allocations[kAllocationSlots];
  alignas(64) PlaceSlot places[kPlaces];            // that this PE's signals come from
  alignas(64) WriteSlot writes[WriteTable::kSlots]; // of signals to this PE
};

/// Bytes of the control area in a segment; the heap begins behind them.
inline constexpr std::int64_t kControlBytes = std::int64_t{2} << 20;
static_assert(sizeof(ControlArea) <= kControlBytes);

} // namespace tdist::sim
