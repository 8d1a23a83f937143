// Streams and the cores that they share; waits of the host; what is left behind.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tdist::test {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kNoTime = 0;
constexpr std::int64_t kSecondNs = 1'000'000'000;

/// Each test begins with an NPU of 4 cube and 8 vector cores, and leaves nothing unfinished.
class Streams : public testing::TestWithParam<int> {
public:
  static void configure(std::int32_t aic = 4, std::int32_t aiv = 8, std::int32_t workers = 2) {
    ASSERT_EQ(tdist_rt_configure(aic, aiv, workers), 0) << tdist_rt_last_error();
  }

protected:
  void SetUp() override { configure(); }
  void TearDown() override { EXPECT_EQ(tdist_rt_stop(kSecondNs), 0); }

private:
  const Deadline deadline;
};

void synchronize() {
  int result = 1;
  while (result == 1) {
    result = tdist_rt_synchronize(kSliceNs);
  }
  ASSERT_EQ(result, 0) << tdist_rt_last_error();
}

/// The same on which cores a program takes.
std::int64_t giveOnCores(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                         std::int64_t stream, std::int32_t aic, std::int32_t aiv) {
  tdist_launch description{};
  description.function = kernel;
  description.kernel_name = "on_cores";
  description.args = arguments.data();
  description.stream = stream;
  std::ranges::copy(grid, description.grid);
  description.aic = aic;
  description.aiv = aiv;
  description.n_args = static_cast<std::int32_t>(arguments.size());
  return tdist_rt_launch(&description);
}

void waitUntilSet(const std::uint64_t *args, const std::int32_t * /*grid*/,
                  const std::int32_t * /*pid*/) {
  while (std::atomic_ref(*pointer<std::int32_t>(args[0])).load() == 0) {
    tdist_sim_yield(&kHere);
  }
}

struct Log {
  std::mutex mutex;
  std::vector<std::int32_t> entries;
};

void appendNumber(const std::uint64_t *args, const std::int32_t * /*grid*/,
                  const std::int32_t * /*pid*/) {
  auto &log = *pointer<Log>(args[0]);
  const std::scoped_lock lock(log.mutex);
  log.entries.push_back(static_cast<std::int32_t>(args[1]));
}

TEST_F(Streams, DoWhatTheyAreGivenInOrder) {
  Log log;
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(give(appendNumber, {1, 1, 1}, {addressOf(&log), i}, 1),
              static_cast<std::int64_t>(i + 1));
  }
  EXPECT_EQ(tdist_rt_stream_end(1), 5);
  synchronize();
  EXPECT_THAT(log.entries, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tdist_rt_stream_reached(1, 5), 1);
}

TEST_F(Streams, ALaunchReturnsWhileItsProgramsWait) {
  std::int32_t word = 0;
  const std::int64_t position = give(waitUntilSet, {3, 1, 1}, {addressOf(&word)}, 1);
  EXPECT_EQ(tdist_rt_stream_reached(1, position), 0);
  EXPECT_EQ(tdist_rt_unfinished(), 1);
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(tdist_rt_stream_reached(1, position), 1);
  EXPECT_EQ(tdist_rt_unfinished(), 0);
}

void setWord(const std::uint64_t *args, const std::int32_t * /*grid*/,
             const std::int32_t * /*pid*/) {
  std::atomic_ref(*pointer<std::int32_t>(args[0])).store(1);
}

TEST_F(Streams, RunWithoutAHostThatWaits) {
  std::int32_t word = 0;
  give(setWord, {1, 1, 1}, {addressOf(&word)}, 1);
  while (std::atomic_ref(word).load() == 0) {
    usleep(100);
  }
}

TEST_F(Streams, OfOneWorkerSignalEachOther) {
  configure(4, 8, /*workers=*/1);
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 2 * kSlotBytes);
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
    const auto me = static_cast<std::int64_t>(args[1]);
    for (std::int32_t round = 1; round <= 100; ++round) {
      if (me == 1) {
        tdist_sim_wait_i32(slot(args[0], me), 1, round, 0, 1, &kHere);
      }
      tdist_sim_notify_i32(slot(args[0], 1 - me), 0, round, kNotifySet, 0, &kHere);
      if (me == 0) {
        tdist_sim_wait_i32(slot(args[0], me), 1, round, 0, 1, &kHere);
      }
    }
  };
  give(kernel, {1, 1, 1}, {signals, 0}, 1);
  give(kernel, {1, 1, 1}, {signals, 1}, 2);
  synchronize();
}

TEST_F(Streams, WaitForPositionsOfOthers) {
  Log log;
  std::int32_t word = 0;
  const std::int64_t blocker = give(waitUntilSet, {1, 1, 1}, {addressOf(&word)}, 1);
  ASSERT_EQ(tdist_rt_stream_wait_for(2, 1, blocker), 0);
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 2}, 2);
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 1}, 1);
  EXPECT_EQ(tdist_rt_stream_wait(2, 2, kNoTime), 1);
  EXPECT_TRUE(log.entries.empty());
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(log.entries.size(), 2U);
  EXPECT_EQ(tdist_rt_stream_wait_for(2, 1, 99), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("position 99 of stream 1"));
}

TEST_F(Streams, MarksTellWhenTheyAreReached) {
  std::int32_t word = 0;
  give(waitUntilSet, {1, 1, 1}, {addressOf(&word)}, 1);
  void *mark = tdist_rt_mark(1);
  void *other = tdist_rt_mark(2);
  EXPECT_EQ(tdist_rt_mark_ns(mark), 0);
  EXPECT_NE(tdist_rt_mark_ns(other), 0) << "its stream has nothing to do";
  ASSERT_EQ(tdist_rt_stream_wait_mark(3, mark), 0);
  EXPECT_EQ(tdist_rt_stream_wait(3, 1, kNoTime), 1);
  EXPECT_EQ(tdist_rt_mark_wait(mark, kNoTime), 1);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(tdist_rt_mark_wait(mark, kNoTime), 0);
  EXPECT_GE(tdist_rt_mark_ns(mark), now.tv_sec * kSecondNs + now.tv_nsec);
  EXPECT_EQ(tdist_rt_stream_wait(3, 1, kNoTime), 0);
  tdist_rt_mark_free(mark);
  tdist_rt_mark_free(other);
  EXPECT_EQ(tdist_rt_mark_ns(nullptr), -1);
}

struct InFlight {
  std::int32_t expected;
  std::atomic<std::int32_t> now = 0;
  std::atomic<std::int32_t> most = 0;
};

void countInFlight(const std::uint64_t *args, const std::int32_t * /*grid*/,
                   const std::int32_t * /*pid*/) {
  auto &count = *pointer<InFlight>(args[0]);
  const std::int32_t now = ++count.now;
  std::int32_t most = count.most;
  while (most < now && !count.most.compare_exchange_weak(most, now)) {
  }
  // Nobody leaves before all who are expected have come, and then late enough to see one too many.
  while (count.most < count.expected) {
    tdist_sim_yield(&kHere);
  }
  for (int turn = 0; turn < 20; ++turn) {
    tdist_sim_yield(&kHere);
  }
  --count.now;
}

TEST_F(Streams, ShareTheCores) {
  InFlight vector{.expected = 8};
  InFlight cube{.expected = 4};
  for (const std::int64_t stream : {1, 2, 3}) {
    EXPECT_GT(giveOnCores(countInFlight, {20, 1, 1}, {addressOf(&vector)}, stream, 0, 1), 0);
  }
  EXPECT_GT(giveOnCores(countInFlight, {20, 1, 1}, {addressOf(&cube)}, 4, 1, 0), 0);
  synchronize();
  EXPECT_EQ(vector.most, 8);
  EXPECT_EQ(cube.most, 4);
}

TEST_F(Streams, AProgramOfAMixedKernelTakesThreeCores) {
  InFlight mixed{.expected = 4};
  EXPECT_GT(giveOnCores(countInFlight, {20, 1, 1}, {addressOf(&mixed)}, 1, 1, 2), 0);
  synchronize();
  EXPECT_EQ(mixed.most, 4);
  configure(4, 6);
  InFlight fewer{.expected = 3};
  EXPECT_GT(giveOnCores(countInFlight, {20, 1, 1}, {addressOf(&fewer)}, 1, 1, 2), 0);
  synchronize();
  EXPECT_EQ(fewer.most, 3);
}

TEST_F(Streams, ALaunchThatFindsNoCoreKeepsItsPlaceInLine) {
  // The consumer takes all cores; its producer is behind it in line, and stays there.
  std::int32_t word = 0;
  give(waitUntilSet, {8, 1, 1}, {addressOf(&word)}, 1);
  const std::int64_t producer = give(setWord, {1, 1, 1}, {addressOf(&word)}, 2);
  EXPECT_EQ(tdist_rt_stream_wait(2, producer, 50'000'000), 1);
  EXPECT_EQ(std::atomic_ref(word).load(), 0);
  // A cube kernel does not need what they wait for.
  std::int32_t other = 0;
  EXPECT_GT(giveOnCores(setWord, {1, 1, 1}, {addressOf(&other)}, 3, 1, 0), 0);
  EXPECT_EQ(tdist_rt_stream_wait(3, 1, kSecondNs), 0);
  EXPECT_EQ(std::atomic_ref(other).load(), 1);
  std::atomic_ref(word).store(1);
  synchronize();
}

void computeForLong(const std::uint64_t *args, const std::int32_t * /*grid*/,
                    const std::int32_t * /*pid*/) {
  while (std::atomic_ref(*pointer<std::int32_t>(args[0])).load() == 0) {
    tdist_sim_take_turns();
  }
}

TEST_F(Streams, ProgramsThatComputeLetOthersHaveTurns) {
  configure(4, 8, /*workers=*/1);
  std::int32_t word = 0;
  give(computeForLong, {3, 1, 1}, {addressOf(&word)}, 1);
  give(setWord, {1, 1, 1}, {addressOf(&word)}, 2);
  synchronize();
}

void failHere(const std::uint64_t * /*args*/, const std::int32_t * /*grid*/,
              const std::int32_t *pid) {
  if (pid[0] == 1) {
    tdist_sim_team_my_pe(5, &kHere);
  }
}

TEST_F(Streams, AFailureStopsItsStreamAndIsToldOnce) {
  const LoneJob job;
  Log log;
  const std::int64_t failed = give(failHere, {3, 1, 1}, {}, 1);
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 1}, 1);
  void *mark = tdist_rt_mark(1);
  ASSERT_EQ(tdist_rt_stream_wait_for(2, 1, failed + 1), 0);
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 2}, 2);
  int result = 1;
  while (result == 1) {
    result = tdist_rt_stream_wait(2, 2, kSliceNs);
  }
  EXPECT_EQ(result, -1) << "whoever waits next is told, whatever for";
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("team 5 does not exist"));
  EXPECT_THAT(tdist_rt_last_error(),
              HasSubstr("kernel test_kernel, program (1,0,0), kernel.py:41"));
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("; launched at host.py:7"));
  synchronize();
  EXPECT_NE(tdist_rt_mark_ns(mark), 0) << "nobody may wait for ever for what is not done";
  EXPECT_THAT(log.entries, ElementsAre(2)) << "what is behind the failure is not done";
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 3}, 1);
  synchronize();
  EXPECT_THAT(log.entries, ElementsAre(2, 3)) << "and the stream can be used again";
  tdist_rt_mark_free(mark);
}

TEST_F(Streams, UnfinishedTellsOfAFailure) {
  const LoneJob job;
  give(failHere, {2, 1, 1}, {}, 1);
  while (tdist_rt_unfinished() > 0) {
    usleep(100);
  }
  EXPECT_EQ(tdist_rt_unfinished(), -1);
  EXPECT_EQ(tdist_rt_synchronize(kNoTime), -1);
  EXPECT_EQ(tdist_rt_unfinished(), 0);
}

TEST_F(Streams, WaitForMemoryThatLaunchesBeforeUse) {
  std::int32_t word = 0;
  std::array<std::int64_t, 8> given{};
  std::array<std::int64_t, 8> notGiven{};
  const auto waits = [](std::int64_t stream, const auto &memory) {
    const tdist_range range{memory.data(), sizeof memory};
    return tdist_rt_memory_wait(stream, &range, 1, kNoTime);
  };
  give(waitUntilSet, {1, 1, 1}, {addressOf(&word), addressOf(&given[3])}, 1);
  EXPECT_EQ(waits(1, given), 1);
  EXPECT_EQ(waits(1, notGiven), 0);
  EXPECT_EQ(waits(2, given), 0) << "nothing orders stream 2 behind stream 1";
  EXPECT_EQ(tdist_rt_memory_in_use(given.data(), sizeof given), 1);
  EXPECT_EQ(tdist_rt_memory_in_use(notGiven.data(), sizeof notGiven), 0);
  ASSERT_EQ(tdist_rt_stream_wait_for(2, 1, 1), 0);
  EXPECT_EQ(waits(2, given), 1);
  EXPECT_EQ(waits(2, notGiven), 0);
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(waits(2, given), 0);
  EXPECT_EQ(tdist_rt_memory_in_use(given.data(), sizeof given), 0);
}

TEST_F(Streams, SymmetricMemoryIsTheSameOnEveryPe) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0) << tdist_rt_last_error();
  std::int32_t word = 0;
  const std::uint64_t given = allocate(0, 256);
  const std::uint64_t other = allocate(0, 256);
  const std::int64_t distance = static_cast<std::byte *>(tdist_rt_heap_base(1)) -
                                static_cast<std::byte *>(tdist_rt_heap_base(0));
  give(waitUntilSet, {1, 1, 1}, {addressOf(&word), given + 64}, 1);
  const auto isInUse = [](std::uint64_t address) {
    return tdist_rt_memory_in_use(pointer<void>(address), 8);
  };
  EXPECT_EQ(isInUse(given + 192), 1) << "the same allocation";
  EXPECT_EQ(isInUse(given + static_cast<std::uint64_t>(distance)), 1) << "the same on PE 1";
  EXPECT_EQ(isInUse(other), 0);
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(isInUse(given), 0);
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Streams, CopyAndSignalInOrder) {
  const LoneJob job;
  const std::uint64_t target = allocate(0, 64);
  const std::uint64_t signal = allocate(0, 64);
  std::int32_t word = 0;
  std::int64_t source = 41;
  std::int64_t back = 0;
  give(waitUntilSet, {1, 1, 1}, {addressOf(&word)}, 1);
  EXPECT_EQ(tdist_rt_put_on_stream(pointer<void>(target), &source, 8, 0, 1), 0);
  EXPECT_EQ(tdist_rt_signal_on_stream(pointer<void>(signal), 4, 3, kSignalAdd, 0, 1), 0);
  EXPECT_EQ(tdist_rt_wait_until_on_stream(pointer<void>(signal), 4, kEq, 3, 2), 0);
  EXPECT_EQ(tdist_rt_get_on_stream(&back, pointer<void>(target), 8, 0, 2), 0);
  EXPECT_EQ(tdist_rt_memory_in_use(&source, 8), 1);
  EXPECT_EQ(tdist_rt_stream_wait(2, 2, 20'000'000), 1);
  EXPECT_EQ(back, 0);
  source = 42; // the stream has not come to the copy
  std::atomic_ref(word).store(1);
  synchronize();
  EXPECT_EQ(back, 42);
  EXPECT_EQ(tdist_rt_put_on_stream(&source, &source, 8, 0, 1), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("put on a stream"));
  EXPECT_EQ(tdist_rt_signal_on_stream(pointer<void>(signal), 2, 3, kSignalAdd, 0, 1), -1);
  EXPECT_EQ(tdist_rt_wait_until_on_stream(pointer<void>(signal), 4, 9, 3, 2), -1);
}

TEST_F(Streams, GiveUpForgetsWhatWaits) {
  const LoneJob job;
  Log log;
  give([](const std::uint64_t *args, const std::int32_t *,
          const std::int32_t *) { tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere); },
       {20, 1, 1}, {allocate(0, 64)}, 1);
  give(appendNumber, {1, 1, 1}, {addressOf(&log), 1}, 1);
  EXPECT_EQ(tdist_rt_wait_until_on_stream(pointer<void>(allocate(0, 64)), 4, kEq, 3, 2), 0);
  EXPECT_EQ(tdist_rt_synchronize(20'000'000), 1);
  EXPECT_EQ(tdist_rt_give_up(kSecondNs), 0);
  EXPECT_EQ(tdist_rt_unfinished(), 0);
  EXPECT_TRUE(log.entries.empty());
  InFlight all{.expected = 8};
  give(countInFlight, {20, 1, 1}, {addressOf(&all)}, 1);
  synchronize();
  EXPECT_EQ(all.most, 8) << "every core is free again";
}

TEST_F(Streams, TellWhenAllProgramsAreBlocked) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  give([](const std::uint64_t *args, const std::int32_t *,
          const std::int32_t *) { tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere); },
       {2, 1, 1}, {signal}, 1);
  while (tdist_rt_blocked_ns() == 0) {
    usleep(100);
  }
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 4, 1, kSignalSet, 0), 0);
  synchronize();
  EXPECT_EQ(tdist_rt_blocked_ns(), 0);
}

TEST_F(Streams, SleepWhileAllProgramsAreBlocked) {
  const LoneJob job;
  give([](const std::uint64_t *args, const std::int32_t *,
          const std::int32_t *) { tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere); },
       {8, 1, 1}, {allocate(0, 64)}, 1);
  while (tdist_rt_blocked_ns() == 0) {
    usleep(100);
  }
  const std::clock_t before = std::clock();
  usleep(300'000);
  EXPECT_EQ(tdist_rt_synchronize(300'000'000), 1);
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.2) << "of 0.6 that it slept";
  EXPECT_EQ(tdist_rt_give_up(kSecondNs), 0);
}

TEST_F(Streams, ASignalEndsAWaitOfTheHostSooner) {
  const LoneJob job;
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  give([](const std::uint64_t *args, const std::int32_t *,
          const std::int32_t *) { tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere); },
       {1, 1, 1}, {allocate(0, 64)}, 1);
  std::atomic<bool> isOver = false;
  const pthread_t host = pthread_self();
  std::thread interrupter([&] {
    while (!isOver) {
      usleep(1000);
      pthread_kill(host, SIGUSR1);
    }
  });
  EXPECT_EQ(tdist_rt_synchronize(30 * kSecondNs), 1);
  isOver = true;
  interrupter.join();
  EXPECT_EQ(tdist_rt_give_up(kSecondNs), 0);
}

TEST_F(Streams, AForkedChildHasAnEngineOfItsOwn) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer starts no thread in the child of a process with threads";
#endif
#endif
  std::int32_t word = 0;
  give(waitUntilSet, {3, 1, 1}, {addressOf(&word)}, 1);
  EXPECT_EQ(tdist_rt_synchronize(5'000'000), 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kDeadlineSeconds);
    std::int32_t own = 0;
    bool isRight = tdist_rt_unfinished() == 0;
    give(setWord, {1, 1, 1}, {addressOf(&own)}, 1);
    while (std::atomic_ref(own).load() == 0) {
      usleep(100);
    }
    isRight = isRight && tdist_rt_synchronize(kSecondNs) == 0 && tdist_rt_stop(kSecondNs) == 0;
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::atomic_ref(word).store(1);
  synchronize();
}

TEST_F(Streams, StartAgainAfterAStop) {
  for (int round = 0; round < 20; ++round) {
    std::int32_t word = 0;
    give(setWord, {5, 1, 1}, {addressOf(&word)}, 1);
    synchronize();
    EXPECT_EQ(word, 1);
    EXPECT_EQ(tdist_rt_stop(kSecondNs), 0);
  }
}

/// args: words, count. Every program passes a number round a ring of programs.
void passRound(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  const std::int64_t mine = slot(args[0], pid[0]);
  const std::int64_t next = slot(args[0], (pid[0] + 1) % grid[0]);
  for (std::int32_t round = 1; std::cmp_less_equal(round, args[1]); ++round) {
    if (pid[0] != 0) {
      tdist_sim_wait_i32(mine, 1, round, 0, 1, &kHere);
    }
    tdist_sim_notify_i32(next, 0, round, kNotifySet, 0, &kHere);
    if (pid[0] == 0) {
      tdist_sim_wait_i32(mine, 1, round, 0, 1, &kHere);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Streams, testing::Values(1, 2, 4));

TEST_P(Streams, ManyProgramsOfManyStreamsSignalEachOther) {
  configure(20, 40, GetParam());
  const LoneJob job;
  std::vector<std::uint64_t> rings;
  for (std::int64_t stream = 1; stream <= 5; ++stream) {
    for (int launchOfStream = 0; launchOfStream < 4; ++launchOfStream) {
      rings.push_back(allocate(0, 8 * kSlotBytes));
      give(passRound, {8, 1, 1}, {rings.back(), 50}, stream);
    }
  }
  synchronize();
  for (const std::uint64_t ring : rings) {
    for (std::int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(*pointer<std::int32_t>(static_cast<std::uint64_t>(slot(ring, i))), 50);
    }
  }
}

TEST_P(Streams, ManyHostsGiveAndWait) {
  configure(20, 40, GetParam());
  std::vector<std::thread> hosts;
  for (std::int64_t host = 1; host <= 4; ++host) {
    hosts.emplace_back([host] {
      for (int round = 0; round < 50; ++round) {
        std::int32_t word = 0;
        give(setWord, {3, 1, 1}, {addressOf(&word)}, host);
        int result = 1;
        while (result == 1) {
          result = tdist_rt_stream_wait(host, tdist_rt_stream_end(host), kSliceNs);
        }
        EXPECT_EQ(result, 0);
        EXPECT_EQ(word, 1);
      }
    });
  }
  for (std::thread &host : hosts) {
    host.join();
  }
}

TEST_P(Streams, RanksExchangeWhileTheirHostsDoOtherThings) {
  runRanks(2, [](int rank) {
    configure(20, 40, GetParam());
    const std::uint64_t signals = allocate(rank, 64 * kSlotBytes);
    hostBarrier();
    const auto kernel = [](const std::uint64_t *args, const std::int32_t *,
                           const std::int32_t *pid) {
      const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
      for (std::int32_t round = 1; round <= 30; ++round) {
        tdist_sim_notify_i32(slot(args[0], pid[0]), 1 - me, round, kNotifySet, 0, &kHere);
        tdist_sim_wait_i32(slot(args[0], pid[0]), 1, round, 0, 1, &kHere);
        // The slot may be set again only when this PE has seen it.
        tdist_sim_notify_i32(slot(args[0], 32 + pid[0]), 1 - me, round, kNotifySet, 0, &kHere);
        tdist_sim_wait_i32(slot(args[0], 32 + pid[0]), 1, round, 0, 1, &kHere);
      }
    };
    give(kernel, {32, 1, 1}, {signals}, 1);
    usleep(1000 * static_cast<unsigned>(rank));
    synchronize();
    EXPECT_EQ(tdist_rt_stop(kSecondNs), 0);
  });
}

TEST_F(Streams, HostStatesAreTold) {
  EXPECT_EQ(tdist_rt_host_state(TDIST_HOST_IN_HCCL), TDIST_HOST_RUNS) << "outside of a job";
  EXPECT_EQ(tdist_rt_host_state(TDIST_HOST_RUNS), TDIST_HOST_RUNS);
  const LoneJob job;
  EXPECT_EQ(tdist_rt_host_state(TDIST_HOST_IN_SHMEM), TDIST_HOST_RUNS);
  EXPECT_EQ(tdist_rt_host_state(TDIST_HOST_SYNCHRONIZES), TDIST_HOST_IN_SHMEM);
  EXPECT_EQ(tdist_rt_host_state(TDIST_HOST_RUNS), TDIST_HOST_SYNCHRONIZES);
  EXPECT_EQ(tdist_rt_host_state(5), -1);
}

} // namespace
} // namespace tdist::test
