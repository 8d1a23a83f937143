// Sleeping until another process has changed something.

#include "control_area.h"
#include "doorbell.h"
#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace tdist::test {
namespace {

using sim::Doorbell;
using sim::Slept;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// A doorbell and a word, shared with forked processes.
struct Shared {
  Doorbell doorbell;
  std::int32_t word;
};

class SharedMemory {
public:
  SharedMemory()
      : memory(static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  ~SharedMemory() { munmap(memory, sizeof(Shared)); }

  Shared *operator->() const { return memory; }

private:
  Shared *memory;
};

class DoorbellTest : public testing::Test {
  const Deadline deadline;
};

TEST_F(DoorbellTest, WakesASleeperOfAnotherProcess) {
  const SharedMemory shared;
  const pid_t ringer = fork();
  if (ringer == 0) {
    usleep(50'000);
    std::atomic_ref(shared->word).store(1);
    shared->doorbell.ring();
    _exit(0);
  }
  const auto isSet = [&] { return std::atomic_ref(shared->word).load() == 1; };
  const auto before = steady_clock::now();
  while (!isSet()) {
    shared->doorbell.sleep(seconds(30), isSet);
  }
  EXPECT_LT(steady_clock::now() - before, seconds(20));
  waitpid(ringer, nullptr, 0);
}

TEST_F(DoorbellTest, LosesNoWake) {
  // Two processes hand a word to and fro, and sleep at once each time: a lost wake costs 30 s.
  constexpr std::int32_t kRounds = 2000;
  const SharedMemory there;
  const SharedMemory back;
  const auto await = [](const SharedMemory &shared, std::int32_t value) {
    const auto isThere = [&] { return std::atomic_ref(shared->word).load() == value; };
    while (!isThere()) {
      shared->doorbell.sleep(seconds(30), isThere);
    }
  };
  const auto send = [](const SharedMemory &shared, std::int32_t value) {
    std::atomic_ref(shared->word).store(value);
    shared->doorbell.ring();
  };
  const pid_t other = fork();
  if (other == 0) {
    for (std::int32_t round = 1; round <= kRounds; ++round) {
      await(there, round);
      send(back, round);
    }
    _exit(0);
  }
  const auto before = steady_clock::now();
  for (std::int32_t round = 1; round <= kRounds; ++round) {
    send(there, round);
    await(back, round);
  }
  EXPECT_LT(steady_clock::now() - before, seconds(25));
  waitpid(other, nullptr, 0);
}

TEST_F(DoorbellTest, SleepIsBounded) {
  const SharedMemory shared;
  const auto before = steady_clock::now();
  EXPECT_EQ(shared->doorbell.sleep(milliseconds(30), [] { return false; }), Slept::Awake);
  EXPECT_GE(steady_clock::now() - before, milliseconds(30));
  EXPECT_EQ(shared->doorbell.sleep(seconds(30), [] { return true; }), Slept::Awake);
  EXPECT_LT(steady_clock::now() - before, seconds(20));
}

/// What others see of the doorbell of PE 1, with somebody asleep on it.
class WatchedDoorbell {
public:
  explicit WatchedDoorbell(const Memories &memories)
      : area(
            static_cast<std::byte *>(mmap(nullptr, sizeof(sim::ControlArea), PROT_READ | PROT_WRITE,
                                          MAP_SHARED, memories.fds()[1], 0))) {
    std::atomic_ref(words()[1]).store(1); // a waiter
  }
  WatchedDoorbell(const WatchedDoorbell &) = delete;
  WatchedDoorbell &operator=(const WatchedDoorbell &) = delete;
  ~WatchedDoorbell() { munmap(area, sizeof(sim::ControlArea)); }

  /// How often it has been rung since the last call.
  std::uint32_t rings() {
    const std::uint32_t now = std::atomic_ref(words()[0]).load();
    return now - std::exchange(seen, now);
  }

  sim::ControlArea &control() { return *reinterpret_cast<sim::ControlArea *>(area); }

private:
  std::uint32_t *words() {
    return reinterpret_cast<std::uint32_t *>(area + offsetof(sim::ControlArea, doorbell));
  }

  std::byte *area;
  std::uint32_t seen = 0;
};

TEST_F(DoorbellTest, IsRungByAllThatOthersWaitFor) {
  const Memories memories(2);
  WatchedDoorbell watched(memories);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0) << tdist_rt_last_error();
  const std::uint64_t word = allocate(0, 64);
  const auto ringsOf = [&](tdist_kernel_fn kernel) {
    launch(kernel, {1, 1, 1}, {word});
    return watched.rings();
  };
  using Args = const std::uint64_t *;
  using Ids = const std::int32_t *;
  EXPECT_EQ(ringsOf([](Args args, Ids, Ids) {
              tdist_sim_notify_i32(operand(args[0]), 1, 1, kNotifySet, 1, &kHere);
              tdist_sim_notify_i64(operand(args[0]), 1, 1, kNotifyAdd, 1, &kHere);
            }),
            2U);
  EXPECT_EQ(ringsOf([](Args args, Ids, Ids) {
              tdist_sim_signal_op(operand(args[0]), 1, kSignalAdd, 1, &kHere);
            }),
            1U);
  EXPECT_EQ(ringsOf([](Args args, Ids, Ids) { tdist_sim_int_p(operand(args[0]), 1, 1, &kHere); }),
            1U);
  EXPECT_EQ(ringsOf([](Args args, Ids, Ids) {
              tdist_sim_putmem(operand(args[0]), operand(args[0]), 8, 1, &kHere);
            }),
            1U);
  EXPECT_EQ(ringsOf([](Args args, Ids, Ids) {
              tdist_sim_notify_i32(operand(args[0]), 0, 1, kNotifySet, 1, &kHere);
              tdist_sim_getmem(operand(args[0]), operand(args[0]), 8, 1, &kHere);
            }),
            0U)
      << "nothing of PE 1 has changed";
  EXPECT_EQ(tdist_rt_signal(pointer<void>(word), 8, 1, kSignalSet, 1), 0);
  EXPECT_EQ(watched.rings(), 1U);

  // A barrier rings when it is complete, and not before.
  ASSERT_GE(tdist_rt_barrier_arrive(), 1);
  EXPECT_EQ(watched.rings(), 0U);
  std::atomic_ref(watched.control().hostBarrier).store(2);
  ASSERT_GE(tdist_rt_barrier_arrive(), 1);
  EXPECT_EQ(watched.rings(), 1U);
  std::atomic_ref(watched.control().deviceBarrier).store(1);
  EXPECT_EQ(ringsOf([](Args, Ids, Ids) { tdist_sim_barrier_all(0, &kHere); }), 1U);
  EXPECT_EQ(tdist_rt_detach(), 0);
}

} // namespace
} // namespace tdist::test
