// Two processes hand a number to and fro through shared memory; prints nanoseconds a round trip.

#include "arguments.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Shared {
  alignas(64) std::atomic<std::int64_t> ping{0};
  alignas(64) std::atomic<std::int64_t> pong{0};
};

/// The fastest that plain atomics can be on two cores: spin, and give the core away only when the
/// other side has not answered for long, as it cannot where both share one core.
void waitFor(const std::atomic<std::int64_t> &word, std::int64_t value) {
  constexpr int kPolls = 4096;
  for (int polls = 0; word.load(std::memory_order_acquire) != value; ++polls) {
    if (polls > kPolls) {
      sched_yield();
    }
  }
}

void answer(Shared &shared, long rounds) {
  for (long round = 1; round <= rounds; ++round) {
    waitFor(shared.ping, round);
    shared.pong.store(round, std::memory_order_release);
  }
}

} // namespace

int main(int argc, char **argv) {
  const long rounds = tdist::bench::roundsFrom(argc, argv);
  void *memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  auto &shared = *new (memory) Shared;
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    return 1;
  }
  if (child == 0) {
    answer(shared, rounds + 1);
    _exit(0);
  }
  // The first round waits for the other process to be there.
  shared.ping.store(1, std::memory_order_release);
  waitFor(shared.pong, 1);
  const auto start = std::chrono::steady_clock::now();
  for (long round = 2; round <= rounds + 1; ++round) {
    shared.ping.store(round, std::memory_order_release);
    waitFor(shared.pong, round);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  waitpid(child, nullptr, 0);
  std::printf("%.3f\n", spent.count() / static_cast<double>(rounds));
  return 0;
}
