#include "doorbell.h"

#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tdist::sim {

// Not FUTEX_PRIVATE_FLAG: the word is shared among processes, each with its own address of it.

void Doorbell::wake() noexcept {
  // Release: who finds the new value with the kernel's or its own load sees what was stored before.
  std::atomic_ref(bell).fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Slept Doorbell::wait(std::uint32_t seen, std::chrono::nanoseconds atMost) noexcept {
  constexpr long kNanosecondsPerSecond = 1'000'000'000;
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(atMost.count() / kNanosecondsPerSecond);
  timeout.tv_nsec = static_cast<long>(atMost.count() % kNanosecondsPerSecond);
  const long result = syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  return result == -1 && errno == EINTR ? Slept::Interrupted : Slept::Awake;
}

} // namespace tdist::sim
