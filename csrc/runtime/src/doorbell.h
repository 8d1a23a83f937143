// How a process of the job sleeps until another one has changed something it waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tdist::sim {

enum class Slept { Awake, Interrupted };

/// A PE's bell, in shared memory, all zero at first.
///
/// No wake may be lost between a sleeper that has just found its words unchanged and a signaller
/// that has just seen nobody asleep. Each side writes one thing and then reads the other's: the
/// sleeper counts itself into `waiters`, then loads the words; the signaller stores a word, then
/// loads `waiters`. All four are seq_cst, so they lie in one total order: whichever write comes
/// second there, the read behind it sees the other's write. Hence the rule for callers: words are
/// stored, and looked at before a sleep, with memory_order_seq_cst.
/// A sleeper counted in is woken because the ring changes `bell` before it wakes, and the kernel
/// compares `bell` with the value that the sleeper had read before it looked at the words.
///
/// What changes memory without a ring (a kernel's plain stores and atomics) is seen when the sleep,
/// which is always bounded, is over.
class Doorbell {
public:
  /// Call it after a seq_cst store of what others may wait for. Cheap when nobody sleeps.
  void ring() noexcept {
    if (std::atomic_ref(waiters).load(std::memory_order_seq_cst) != 0) {
      wake();
    }
  }

  /// Sleeps until rung, unless `changed()` finds that there is nothing to sleep for.
  template <class Changed>
  Slept sleep(std::chrono::nanoseconds atMost, const Changed &changed) noexcept {
    // Acquire: the load stays before the look at the words, so a ring between the two is noticed.
    const std::uint32_t seen = std::atomic_ref(bell).load(std::memory_order_acquire);
    std::atomic_ref(waiters).fetch_add(1, std::memory_order_seq_cst);
    const Slept slept = changed() ? Slept::Awake : wait(seen, atMost);
    // Relaxed: counting out late only costs a signaller a needless wake.
    std::atomic_ref(waiters).fetch_sub(1, std::memory_order_relaxed);
    return slept;
  }

private:
  void wake() noexcept;
  Slept wait(std::uint32_t seen, std::chrono::nanoseconds atMost) noexcept;

  std::uint32_t bell;
  std::uint32_t waiters;
};

} // namespace tdist::sim
