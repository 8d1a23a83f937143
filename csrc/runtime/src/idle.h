// What a thread does while nothing it waits for changes.
#pragma once

#include "doorbell.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <thread>

namespace tdist::sim {

using Clock = std::chrono::steady_clock;

/// A few polls, which catch an answer from a PE on another core; then the core is offered to others
/// for some 20 us, which catches an answer from a PE on this one; then sleeps on the doorbell.
class IdleRule {
public:
  enum class Step { PollAgain, SliceOver };

  /// `doorbell` may be nullptr: nobody rings then.
  IdleRule(Doorbell *doorbell, Clock::time_point deadline) noexcept
      : doorbell(doorbell), deadline(deadline) {}

  /// Something has changed.
  void reset() noexcept { *this = IdleRule(doorbell, deadline); }

  /// Whether the polls are over, so that there is time for book-keeping.
  [[nodiscard]] bool isPatient() const noexcept { return polls >= kPolls; }

  /// One step. `changed()` says whether it would be wrong to sleep. `isSpinning`: something waits
  /// for what no ring announces, so sleeps are kept short.
  template <class Changed> Step step(bool isSpinning, const Changed &changed) noexcept {
    if (polls < kPolls) {
      ++polls;
      relax();
      return Step::PollAgain;
    }
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      return Step::SliceOver;
    }
    if (yieldUntil == Clock::time_point{}) {
      yieldUntil = now + kYielding;
    }
    if (now < yieldUntil) {
      sched_yield();
      return Step::PollAgain;
    }
    const std::chrono::nanoseconds atMost =
        std::min<std::chrono::nanoseconds>(isSpinning ? kShortestNap : nap, deadline - now);
    nap = std::min(nap * 2, kLongestNap);
    if (doorbell == nullptr) {
      std::this_thread::sleep_for(atMost);
      return Step::PollAgain;
    }
    return doorbell->sleep(atMost, changed) == Slept::Interrupted ? Step::SliceOver
                                                                  : Step::PollAgain;
  }

private:
  static constexpr int kPolls = 40; // about a microsecond
  static constexpr std::chrono::microseconds kYielding{20};
  static constexpr std::chrono::microseconds kShortestNap{100};
  static constexpr std::chrono::microseconds kLongestNap{2000};

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
  }

  Doorbell *doorbell;
  Clock::time_point deadline;
  Clock::time_point yieldUntil;
  std::chrono::microseconds nap = kShortestNap;
  int polls = 0;
};

/// When a slice that begins now is over.
inline Clock::time_point deadlineAfter(std::int64_t sliceNs) noexcept {
  constexpr std::int64_t kLongest = std::int64_t{1} << 60; // 36 years, and no overflow
  return Clock::now() + std::chrono::nanoseconds(std::clamp<std::int64_t>(sliceNs, 0, kLongest));
}

} // namespace tdist::sim
