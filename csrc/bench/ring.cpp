// 40 threads hand a number round a ring; prints microseconds for all rounds.

#include "arguments.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kThreads = 40;

struct Slot {
  alignas(64) std::atomic<std::int64_t> word{0};
};

void relay(std::array<Slot, kThreads> &slots, std::size_t index, long rounds) {
  std::atomic<std::int64_t> &own = slots[index].word;
  std::atomic<std::int64_t> &next = slots[(index + 1) % kThreads].word;
  const bool begins = index == 0;
  for (long round = 1; round <= rounds; ++round) {
    if (begins) {
      next.store(round, std::memory_order_release);
      next.notify_one();
    }
    for (std::int64_t seen = own.load(std::memory_order_acquire); seen != round;
         seen = own.load(std::memory_order_acquire)) {
      own.wait(seen, std::memory_order_acquire);
    }
    if (!begins) {
      next.store(round, std::memory_order_release);
      next.notify_one();
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  const long rounds = tdist::bench::roundsFrom(argc, argv);
  std::array<Slot, kThreads> slots;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t index = 0; index < kThreads; ++index) {
    threads.emplace_back(relay, std::ref(slots), index, rounds);
  }
  threads.clear(); // joins
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  std::printf("%.3f\n", spent.count());
  return 0;
}
