// Launches without communication: programs, cores, slices, failures, memory.

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
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tdist::test {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

class Launch : public testing::Test {
  const Deadline deadline;
};

std::int64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::int64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    ++count;
  }
  return count;
}

void appendProgram(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  pointer<std::vector<Grid>>(args[0])->push_back({pid[0], pid[1], pid[2]});
  EXPECT_EQ(grid[0] * grid[1] * grid[2], static_cast<std::int32_t>(args[1]));
}

TEST_F(Launch, RunsEveryProgramInOrder) {
  std::vector<Grid> seen;
  launch(appendProgram, {3, 2, 2}, {addressOf(&seen), 12}, /*cores=*/4);
  std::vector<Grid> expected;
  for (std::int32_t z = 0; z < 2; ++z) {
    for (std::int32_t y = 0; y < 2; ++y) {
      for (std::int32_t x = 0; x < 3; ++x) {
        expected.push_back({x, y, z});
      }
    }
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(Launch, WithoutProgramsIsFinished) {
  std::vector<Grid> seen;
  launch(appendProgram, {0, 1, 1}, {addressOf(&seen), 0});
  launch(appendProgram, {2, 0, 1}, {addressOf(&seen), 0});
  EXPECT_TRUE(seen.empty());
}

TEST_F(Launch, CopiesItsArguments) {
  std::vector<Grid> seen;
  Arguments arguments{addressOf(&seen), 1};
  Launched launched(appendProgram, {1, 1, 1}, arguments);
  arguments.assign(2, 0);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(seen.size(), 1U);
}

TEST_F(Launch, RefusesWhatCannotBe) {
  ASSERT_EQ(tdist_rt_configure(4, 8, 1), 0);
  const auto refuses = [](const tdist_launch &description, const char *text) {
    EXPECT_EQ(tdist_rt_launch(&description), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr(text));
  };
  const std::uint64_t none = 0;
  tdist_launch good{};
  good.function = appendProgram;
  good.kernel_name = "k";
  good.args = &none;
  good.aiv = 1;
  std::ranges::fill(good.grid, 1);
  const auto with = [&](const auto &change) {
    tdist_launch changed = good;
    change(changed);
    return changed;
  };
  refuses(with([](tdist_launch &bad) { bad.grid[0] = -1; }), "grid (-1,1,1)");
  refuses(with([](tdist_launch &bad) { std::ranges::fill(bad.grid, INT32_MAX); }), "more than");
  refuses(with([](tdist_launch &bad) { bad.aiv = 0; }), "0 cube and 0 vector cores");
  refuses(with([](tdist_launch &bad) { bad.aiv = 9; }),
          "takes 0 cube and 9 vector cores, and the simulated NPU has 4 and 8");
  refuses(with([](tdist_launch &bad) { bad.function = nullptr; }), "without a function");
  EXPECT_EQ(tdist_rt_launch(nullptr), -1);
  EXPECT_EQ(tdist_rt_configure(0, 0, 1), -1);
  EXPECT_EQ(tdist_rt_configure(1, 1, -1), -1);
}

struct InFlight {
  int now = 0;
  int most = 0;
};

void countInFlight(const std::uint64_t *args, const std::int32_t * /*grid*/,
                   const std::int32_t * /*pid*/) {
  auto &count = *pointer<InFlight>(args[0]);
  count.most = std::max(count.most, ++count.now);
  for (int turn = 0; turn < 3; ++turn) {
    tdist_sim_yield(&kHere);
  }
  --count.now;
}

TEST_F(Launch, HasAtMostAsManyProgramsInFlightAsCores) {
  InFlight count;
  launch(countInFlight, {50, 1, 1}, {addressOf(&count)}, /*cores=*/7);
  EXPECT_EQ(count.most, 7);
  count = {};
  launch(countInFlight, {5, 1, 1}, {addressOf(&count)}, /*cores=*/7);
  EXPECT_EQ(count.most, 5);
}

void spinForTurn(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  // As a compiled spin lock does it: the last program has the first turn.
  const std::atomic_ref<std::int32_t> turn(*pointer<std::int32_t>(args[0]));
  while (turn.load() != grid[0] - 1 - pid[0]) {
    tdist_sim_yield(&kHere);
  }
  turn.fetch_add(1);
}

TEST_F(Launch, LetsProgramsSpinOnEachOther) {
  std::int32_t turn = 0;
  launch(spinForTurn, {16, 1, 1}, {addressOf(&turn)});
  EXPECT_EQ(turn, 16);
}

void spinUntilSet(const std::uint64_t *args, const std::int32_t * /*grid*/,
                  const std::int32_t * /*pid*/) {
  while (std::atomic_ref(*pointer<std::int32_t>(args[0])).load() == 0) {
    tdist_sim_yield(&kHere);
  }
}

TEST_F(Launch, SliceEndsThoughNothingDoes) {
  std::int32_t word = 0;
  Launched launched(spinUntilSet, {3, 1, 1}, {addressOf(&word)});
  for (const std::int64_t sliceMs : {0, 1, 30}) {
    const auto before = steady_clock::now();
    EXPECT_EQ(launched.run(sliceMs * 1'000'000), 1);
    const auto took = steady_clock::now() - before;
    EXPECT_GE(took, std::chrono::milliseconds(sliceMs));
    EXPECT_LT(took, std::chrono::milliseconds(sliceMs + 500));
  }
  std::atomic_ref(word).store(1);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(launched.finish(), 0) << "and stays finished";
}

void sleepOneMillisecond(const std::uint64_t *args, const std::int32_t * /*grid*/,
                         const std::int32_t * /*pid*/) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++*pointer<std::int32_t>(args[0]);
}

TEST_F(Launch, SliceEndsBetweenProgramsThatDoNotWait) {
  std::int32_t count = 0;
  Launched launched(sleepOneMillisecond, {100, 1, 1}, {addressOf(&count)});
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_GE(count, 1);
  EXPECT_LT(count, 100);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(count, 100);
}

void bounce(const std::uint64_t *args, const std::int32_t * /*grid*/, const std::int32_t *pid) {
  const std::int64_t mine = slot(args[0], pid[0]);
  const std::int64_t other = slot(args[0], 1 - pid[0]);
  for (std::int32_t round = 1;; ++round) {
    if (pid[0] == 0) {
      tdist_sim_notify_i32(other, 0, round, kNotifySet, 0, &kHere);
    }
    tdist_sim_wait_i32(mine, 1, round, 0, 1, &kHere);
    if (pid[0] == 1) {
      tdist_sim_notify_i32(other, 0, round, kNotifySet, 0, &kHere);
    }
    *pointer<std::int32_t>(args[1]) = round;
  }
}

TEST_F(Launch, SliceEndsThoughProgramsKeepWakingEachOther) {
  const LoneJob job;
  std::int32_t rounds = 0;
  Launched launched(bounce, {2, 1, 1}, {allocate(0, 2 * kSlotBytes), addressOf(&rounds)});
  const auto before = steady_clock::now();
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_LT(steady_clock::now() - before, std::chrono::milliseconds(500));
  EXPECT_GT(rounds, 10);
}

void failThird(const std::uint64_t *args, const std::int32_t * /*grid*/, const std::int32_t *pid) {
  ++*pointer<std::int32_t>(args[0]);
  if (pid[0] == 2) {
    tdist_sim_team_my_pe(5, &kHere);
    ADD_FAILURE() << "a call that fails must not return";
  }
  tdist_sim_yield(&kHere);
  tdist_sim_yield(&kHere);
  ++*pointer<std::int32_t>(args[1]);
}

TEST_F(Launch, FailureNamesItsPlaceAndStopsTheOthers) {
  const LoneJob job;
  std::int32_t begun = 0;
  std::int32_t ended = 0;
  Launched launched(failThird, {5, 1, 1}, {addressOf(&begun), addressOf(&ended)});
  EXPECT_EQ(launched.finish(), -1);
  const std::string text = tdist_rt_last_error();
  EXPECT_THAT(text, HasSubstr("team_my_pe: team 5 does not exist"));
  EXPECT_THAT(text, HasSubstr("; kernel test_kernel, program (2,0,0), kernel.py:41, rank 0"));
  EXPECT_EQ(begun, 3);
  EXPECT_EQ(ended, 0);
  EXPECT_THAT(text, HasSubstr("rank 0; launched at host.py:7"));
  EXPECT_EQ(launched.finish(), 0) << "it is told once";
}

TEST_F(Launch, DistributedCallsNeedAJob) {
  const auto kernel = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
    tdist_sim_my_pe(-1, &kHere);
  };
  const std::string text = failureOf(kernel, {1, 1, 1});
  EXPECT_THAT(text, HasSubstr("aclshmem is not initialised"));
  EXPECT_THAT(text, HasSubstr("kernel.py:41"));
  EXPECT_THAT(text, testing::Not(HasSubstr("rank 0")));
}

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

/// Bytes that the allocator has given out. 0 under sanitizers, whose allocators keep no such count
/// and look for leaks by themselves.
std::int64_t allocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

void holdMemory(const std::uint64_t *args, const std::int32_t * /*grid*/,
                const std::int32_t * /*pid*/) {
  for (std::int64_t align = 1; align <= 4096; align *= 4) {
    void *freed = tdist_sim_alloc(align, 1000);
    void *kept = tdist_sim_alloc(align, kMebibyte);
    EXPECT_EQ(addressOf(freed) % align, 0U);
    EXPECT_EQ(addressOf(kept) % align, 0U);
    std::memset(freed, 1, 1000);
    tdist_sim_free(freed);
  }
  tdist_sim_free(nullptr);
  auto &most = *pointer<std::int64_t>(args[1]);
  most = std::max(most, allocatedBytes());
  if (args[0] != 0) {
    spinUntilSet(args, nullptr, nullptr);
  }
}

TEST_F(Launch, FreesWhatProgramsForget) {
  const std::int64_t before = allocatedBytes();
  std::int64_t most = 0;
  launch(holdMemory, {50, 1, 1}, {0, addressOf(&most)});
  EXPECT_LT(most - before, 10 * kMebibyte) << "a program holds 7 MiB, and they run one by one";
}

TEST_F(Launch, AbandonedProgramsLeaveNothing) {
  std::int32_t never = 0;
  std::int64_t most = 0;
  const auto abandon = [&] {
    Launched launched(holdMemory, {20, 1, 1}, {addressOf(&never), addressOf(&most)}, /*cores=*/10);
    EXPECT_EQ(launched.run(5'000'000), 1); // until the cores are full
  };
  abandon();
  const std::int64_t bytes = allocatedBytes();
  const std::int64_t maps = mappings();
  for (int round = 0; round < 20; ++round) {
    abandon();
  }
  EXPECT_LT(allocatedBytes() - bytes, kMebibyte) << "10 programs of 7 MiB each round";
  EXPECT_LT(mappings() - maps, 100) << "two for each stack, 10 stacks each round: 400";
}

TEST_F(Launch, FailsWhenAProgramAsksForTooMuch) {
  const auto tooMuch = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
    tdist_sim_alloc(64, std::int64_t{1} << 60);
  };
  EXPECT_THAT(failureOf(tooMuch, {1, 1, 1}),
              HasSubstr("no memory for 1152921504606846976 bytes that a program asks for"));
  const auto negative = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
    tdist_sim_alloc(64, -1);
  };
  EXPECT_THAT(failureOf(negative, {1, 1, 1}), HasSubstr("-1 bytes"));
  const auto misaligned = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
    tdist_sim_alloc(48, 8);
  };
  EXPECT_THAT(failureOf(misaligned, {1, 1, 1}), HasSubstr("no power of two"));
}

TEST_F(Launch, CanBeWaitedForOnAnotherThread) {
  std::int32_t word = 0;
  Launched launched(spinUntilSet, {3, 1, 1}, {addressOf(&word)});
  EXPECT_EQ(launched.run(0), 1);
  std::thread([&] {
    EXPECT_EQ(launched.run(0), 1);
    std::atomic_ref(word).store(1);
    EXPECT_EQ(launched.finish(), 0);
  }).join();
}

TEST_F(Launch, SeveralRunSideBySide) {
  std::array<std::thread, 4> threads;
  for (std::thread &thread : threads) {
    thread = std::thread([] {
      for (int round = 0; round < 50; ++round) {
        std::int32_t turn = 0;
        launch(spinForTurn, {8, 1, 1}, {addressOf(&turn)});
        EXPECT_EQ(turn, 8);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
}

constexpr std::int64_t kMessages = 500;

/// args: data, signals, role. Plain stores and loads of data: under ThreadSanitizer the signals
/// must order them by themselves.
void exchange(const std::uint64_t *args, const std::int32_t * /*grid*/,
              const std::int32_t * /*pid*/) {
  auto &data = *pointer<std::int64_t>(args[0]);
  for (std::int64_t message = 1; message <= kMessages; ++message) {
    if (args[2] == 0) {
      data = message;
      tdist_sim_notify_i64(slot(args[1], 0), 0, message, kNotifySet, 0, &kHere);
      tdist_sim_wait_i64(slot(args[1], 1), 1, message, 0, 1, &kHere);
    } else {
      tdist_sim_wait_i64(slot(args[1], 0), 1, message, 0, 1, &kHere);
      ASSERT_EQ(data, message);
      tdist_sim_notify_i64(slot(args[1], 1), 0, message, kNotifySet, 0, &kHere);
    }
  }
}

TEST_F(Launch, SignalsOrderDataBetweenThreads) {
  const LoneJob job;
  const std::uint64_t data = allocate(0, 64);
  const std::uint64_t signals = allocate(0, 2 * kSlotBytes);
  std::thread receiver([&] { launch(exchange, {1, 1, 1}, {data, signals, 1}); });
  launch(exchange, {1, 1, 1}, {data, signals, 0});
  receiver.join();
}

TEST_F(Launch, SignalsOrderDataBetweenAHostAndAKernel) {
  const LoneJob job;
  const std::uint64_t data = allocate(0, 64);
  const std::uint64_t signals = allocate(0, 2 * kSlotBytes);
  std::thread receiver([&] { launch(exchange, {1, 1, 1}, {data, signals, 1}); });
  for (std::int64_t message = 1; message <= kMessages; ++message) {
    *pointer<std::int64_t>(data) = message;
    ASSERT_EQ(tdist_rt_signal(pointer<void>(signals), 8, message, kSignalSet, 0), 0);
    void *answer = pointer<void>(signals + kSlotBytes);
    while (tdist_rt_wait_until(answer, 8, kEq, message, kSliceNs) == 1) {
    }
  }
  receiver.join();
}

TEST_F(Launch, StaysInTheJobItBeganIn) {
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
    tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere);
  };
  auto job = std::make_unique<LoneJob>();
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(kernel, {1, 1, 1}, {signal});
  EXPECT_EQ(launched.run(0), 1);
  job.reset(); // detaches
  std::atomic_ref(*pointer<std::int32_t>(signal)).store(1);
  EXPECT_EQ(launched.finish(), 0) << tdist_rt_last_error();
}

void recurse(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  volatile char frame[4096];
  frame[0] = 1;
  if (args == nullptr) {
    return; // never: compilers warn of what recurses for ever
  }
  recurse(args, grid, pid);
  frame[1] = frame[0];
}

TEST(LaunchDeathTest, StackOverflowReachesASignalHandler) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers have handlers of their own";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers have handlers of their own";
#endif
#endif
  const auto overflow = [] {
    struct sigaction action{};
    action.sa_handler = [](int) { _exit(42); };
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    launch(recurse, {1, 1, 1}, {0});
  };
  EXPECT_EXIT(overflow(), testing::ExitedWithCode(42), "");
}

TEST(LaunchDeathTest, DeviceFunctionsOutsideOfALaunchAbort) {
  EXPECT_DEATH(tdist_sim_my_pe(-1, &kHere), "outside of a kernel launch");
}

} // namespace
} // namespace tdist::test
