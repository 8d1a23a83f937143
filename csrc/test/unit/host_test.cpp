// The host side of the shmem library.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace tdist::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

class Host : public testing::Test {
  const Deadline deadline;
};

TEST_F(Host, BarrierHoldsRanksTogether) {
  runRanks(4, [](int rank) {
    const std::uint64_t counts = allocate(rank, 64);
    hostBarrier();
    for (std::int64_t round = 1; round <= 50; ++round) {
      ASSERT_EQ(tdist_rt_signal(pointer<void>(counts), 8, 1, kSignalAdd, 0), 0);
      hostBarrier();
      std::int64_t seen = 0;
      ASSERT_EQ(tdist_rt_get(&seen, pointer<void>(counts), sizeof seen, 0), 0);
      ASSERT_EQ(seen, round * 4);
      hostBarrier();
    }
  });
}

TEST_F(Host, BarrierIsApartFromTheDevices) {
  runRanks(2, [](int) {
    const std::int64_t ticket = tdist_rt_barrier_arrive();
    const auto kernel = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
      tdist_sim_barrier_all(0, &kHere);
    };
    launch(kernel, {2, 1, 1});
    launch(kernel, {2, 1, 1});
    EXPECT_EQ(tdist_rt_barrier_wait(ticket, 0), 0) << "both hosts have arrived before";
  });
}

TEST_F(Host, BarrierEndsItsSlice) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0);
  const std::int64_t ticket = tdist_rt_barrier_arrive();
  const auto before = steady_clock::now();
  EXPECT_EQ(tdist_rt_barrier_wait(ticket, 0), 1);
  EXPECT_EQ(tdist_rt_barrier_wait(ticket, 30'000'000), 1);
  const auto took = steady_clock::now() - before;
  EXPECT_GE(took, milliseconds(30));
  EXPECT_LT(took, milliseconds(530));
  EXPECT_EQ(tdist_rt_barrier_wait(0, 0), -1) << "no such ticket";
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Host, WaitsForWordsOfEveryWidth) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  const auto wait = [word](std::int32_t bytes, std::int32_t compare, std::int64_t value) {
    return tdist_rt_wait_until(pointer<void>(word), bytes, compare, value, 0);
  };
  *pointer<std::int64_t>(word) = 0x1122334455667788;
  EXPECT_EQ(wait(8, kEq, 0x1122334455667788), 0);
  EXPECT_EQ(wait(4, kEq, 0x55667788), 0);
  EXPECT_EQ(wait(2, kEq, 0x7788), 0);
  EXPECT_EQ(wait(1, kEq, -0x78), 0) << "words are signed";
  EXPECT_EQ(wait(8, kLt, 0x1122334455667788), 1);
  EXPECT_EQ(wait(4, kGt, 0), 0);
  EXPECT_EQ(wait(2, kNe, 0x7788), 1);
  EXPECT_EQ(wait(3, kEq, 0), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("a word of 3 bytes"));
  EXPECT_EQ(wait(4, 6, 0), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("comparison 6"));
  std::int32_t local = 0;
  EXPECT_EQ(tdist_rt_wait_until(&local, 4, kEq, 0, 0), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("is local memory"));
}

TEST_F(Host, WaitsForAKernelOfAnotherRank) {
  runRanks(2, [](int rank) {
    const std::uint64_t word = allocate(rank, 64);
    hostBarrier();
    if (rank == 0) {
      const auto kernel = [](const std::uint64_t *args, const std::int32_t *,
                             const std::int32_t *) {
        usleep(30'000);
        tdist_sim_notify_i64(operand(args[0]), 1, 7, kNotifySet, 1, &kHere);
      };
      launch(kernel, {1, 1, 1}, {word});
    } else {
      int result = 1;
      while (result == 1) {
        result = tdist_rt_wait_until(pointer<void>(word), 8, kGe, 7, kSliceNs);
      }
      EXPECT_EQ(result, 0);
    }
  });
}

TEST_F(Host, CopiesToAndFromOtherRanks) {
  runRanks(3, [](int rank) {
    const std::uint64_t object = allocate(rank, 64);
    hostBarrier();
    std::array<std::int32_t, 4> mine{};
    mine.fill(rank);
    const int next = (rank + 1) % 3;
    ASSERT_EQ(tdist_rt_put(pointer<void>(object), mine.data(), sizeof mine, next), 0);
    ASSERT_EQ(tdist_rt_quiet(), 0);
    ASSERT_EQ(tdist_rt_fence(), 0);
    hostBarrier();
    for (int pe = 0; pe < 3; ++pe) {
      ASSERT_EQ(tdist_rt_get(mine.data(), pointer<void>(object), sizeof mine, pe), 0);
      EXPECT_THAT(mine, testing::Each((pe + 2) % 3));
    }
    EXPECT_EQ(tdist_rt_put(pointer<void>(object), mine.data(), 65, next), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr("put: address"));
    EXPECT_EQ(tdist_rt_put(pointer<void>(object), mine.data(), 8, 3), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr("PE 3 does not exist"));
    EXPECT_EQ(tdist_rt_get(mine.data(), mine.data(), 8, 0), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr("is local memory"));
    EXPECT_EQ(tdist_rt_get(mine.data(), pointer<void>(object), -1, 0), -1);
  });
}

TEST_F(Host, SignalsBothWidths) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  const auto signal = [word](std::int32_t bytes, std::int64_t value, std::int32_t op) {
    return tdist_rt_signal(pointer<void>(word), bytes, value, op, 0);
  };
  EXPECT_EQ(signal(8, INT64_C(-1), kSignalSet), 0);
  EXPECT_EQ(signal(4, 5, kSignalSet), 0);
  EXPECT_EQ(*pointer<std::int64_t>(word), (INT64_C(-1) << 32) + 5);
  EXPECT_EQ(signal(8, INT64_C(1) << 32, kSignalAdd), 0);
  EXPECT_EQ(*pointer<std::int64_t>(word), 5);
  EXPECT_EQ(signal(2, 1, kSignalSet), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("a word of 2 bytes"));
  EXPECT_EQ(signal(4, 1, 2), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("operation 2"));
}

TEST_F(Host, ASignalHandlerEndsTheSlice) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = [](int) {};
  sigaction(SIGVTALRM, &action, &previous);
  const pid_t own = getpid();
  const pid_t sender = fork();
  if (sender == 0) {
    // More than one: a signal that comes between two sleeps ends none.
    while (getppid() == own) {
      usleep(10'000);
      kill(own, SIGVTALRM);
    }
    _exit(0);
  }
  const auto before = steady_clock::now();
  EXPECT_EQ(tdist_rt_wait_until(pointer<void>(word), 8, kEq, 1, 20'000'000'000), 1);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(10));
  kill(sender, SIGKILL);
  waitpid(sender, nullptr, 0);
  sigaction(SIGVTALRM, &previous, nullptr);
}

} // namespace
} // namespace tdist::test
