// That nobody can go on: found when it is so, and not before.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>

namespace tdist::test {
namespace {

class Deadlock : public testing::Test {
  const Deadline deadline;
};

void waitForOne(const std::uint64_t *args, const std::int32_t * /*grid*/,
                const std::int32_t * /*pid*/) {
  tdist_sim_wait_i64(operand(args[0]), 1, 1, 0, 1, &kHere);
}

/// What the host of the only PE finds when it waits and looks some times.
int lookSomeTimes(std::int32_t state, int times = 5) {
  const std::uint8_t exited = 0;
  (void)tdist_rt_host_state(state);
  int found = 0;
  for (int look = 0; look < times && found == 0; ++look) {
    if (tdist_rt_synchronize(kSliceNs) == 0) {
      break;
    }
    found = tdist_rt_look(&exited, 1);
  }
  (void)tdist_rt_host_state(TDIST_HOST_RUNS);
  return found;
}

constexpr int kMany = 2000; // the machine may be slow

TEST_F(Deadlock, IsFoundOnceNothingCanChange) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(waitForOne, {2, 1, 1}, {signal});
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES, kMany), 1);
}

TEST_F(Deadlock, IsNotFoundWhileTheHostMayDoSomething) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(waitForOne, {2, 1, 1}, {signal});
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_RUNS), 0);
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 0), 0);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES), 0);
}

TEST_F(Deadlock, IsNotFoundWhileAnotherRankMayDoSomething) {
  runRanks(2, [](int rank) {
    const std::uint64_t signal = allocate(rank, 64);
    const std::array<std::uint8_t, 2> exited{};
    hostBarrier();
    if (rank == 0) {
      Launched launched(waitForOne, {1, 1, 1}, {signal});
      (void)tdist_rt_host_state(TDIST_HOST_SYNCHRONIZES);
      int looks = 0;
      while (tdist_rt_synchronize(kSliceNs) == 1) {
        EXPECT_EQ(tdist_rt_look(exited.data(), 2), 0);
        if (++looks == 10) {
          ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 1), 0); // go on, rank 1
        }
      }
      (void)tdist_rt_host_state(TDIST_HOST_RUNS);
    } else {
      while (tdist_rt_wait_until(pointer<void>(signal), 8, kEq, 1, kSliceNs) == 1) {
      }
      ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 0), 0);
    }
    hostBarrier();
  });
}

std::string describedWaits() {
  std::string text(static_cast<std::size_t>(tdist_rt_describe_waits(nullptr, 0)), '\0');
  (void)tdist_rt_describe_waits(text.data(), static_cast<std::int64_t>(text.size()));
  return text;
}

TEST_F(Deadlock, IsFoundWhereAStreamWaits) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  constexpr std::int64_t kStream = 77;
  ASSERT_EQ(tdist_rt_wait_until_on_stream(pointer<void>(signal), 8, kEq, 1, kStream), 0);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES, kMany), 1);
  EXPECT_NE(describedWaits().find("wait_until on a stream"), std::string::npos);
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 0), 0);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES), 0);
  ASSERT_EQ(tdist_rt_give_up(kSliceNs), 0);
}

TEST_F(Deadlock, IsFoundWithMoreWaitsThanTheTableHolds) {
  constexpr std::int32_t kPrograms = 1100;
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(waitForOne, {kPrograms, 1, 1}, {signal}, kPrograms);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES, kMany), 1);
  EXPECT_NE(describedWaits().find("76 more waits"), std::string::npos);
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 0), 0);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES), 0);
}

void spinForOne(const std::uint64_t *args, const std::int32_t * /*grid*/,
                const std::int32_t * /*pid*/) {
  while (std::atomic_ref(*pointer<std::int64_t>(args[0])).load() != 1) {
    tdist_sim_yield(&kHere);
  }
}

TEST_F(Deadlock, IsNotFoundWhereProgramsSpinWhichAreListedWithTheirLoops) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(spinForOne, {2, 1, 1}, {signal});
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES), 0);
  const std::string waits = describedWaits();
  EXPECT_NE(waits.find(R"("file": "kernel.py", "line": 41, "primitive": "loop")"),
            std::string::npos)
      << waits;
  EXPECT_NE(waits.find(R"("loops": true)"), std::string::npos) << waits;
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signal), 8, 1, 0, 0), 0);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(describedWaits().find("loop"), std::string::npos);
}

TEST_F(Deadlock, WaitsOfOtherCodeAreListedAndCount) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  tdist_wait_record record{};
  record.kind = TDIST_WAIT_WORD;
  record.offset = static_cast<std::int64_t>(signal - addressOf(tdist_rt_heap_base(0)));
  record.width = 8;
  record.wanted = 1;
  void *const listed = tdist_rt_list_wait(&record);
  ASSERT_NE(listed, nullptr);
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_IN_SHMEM), 0); // nothing was launched: synchronize() is done
  EXPECT_NE(describedWaits(), "[]");
  tdist_rt_unlist_wait(listed);
  EXPECT_EQ(describedWaits().substr(0, 2), "[]");
}

TEST_F(Deadlock, CountsAreThoseOfTheRankThatHasThem) {
  runRanks(2, [](int rank) {
    constexpr std::uint64_t kKey = 5;
    constexpr std::uint64_t kOther = 6;
    if (rank == 1) {
      ASSERT_EQ(tdist_rt_set_count(kKey, 0), 0);
      ASSERT_EQ(tdist_rt_set_count(kKey, 3), 0);
    }
    hostBarrier();
    EXPECT_EQ(tdist_rt_count_of(kKey), 3);
    EXPECT_EQ(tdist_rt_count_of(kOther), -1);
    hostBarrier();
  });
}

TEST_F(Deadlock, ACountThatMayHaveFoundNoRoomIsNotKnown) {
  const LoneJob job;
  std::uint64_t key = 1;
  while (tdist_rt_set_count(key, key) == 0) {
    ++key;
  }
  EXPECT_EQ(tdist_rt_count_of(key), -2);
  EXPECT_EQ(tdist_rt_count_of(1), 1);
  EXPECT_EQ(tdist_rt_set_count(1, 7), 0);
  EXPECT_EQ(tdist_rt_count_of(1), 7);
}

void doNothing(const std::uint64_t * /*args*/, const std::int32_t * /*grid*/,
               const std::int32_t * /*pid*/) {}

TEST_F(Deadlock, TheLastLaunchThatHasEndedIsTold) {
  const LoneJob job;
  std::array<char, 256> text{};
  ASSERT_GT(tdist_rt_peer_finished(0, text.data(), text.size()), 0);
  EXPECT_STREQ(text.data(), "null");
  launch(doNothing, {3, 1, 1});
  ASSERT_GT(tdist_rt_peer_finished(0, text.data(), text.size()), 0);
  EXPECT_EQ(std::string(text.data()).find(R"({"kernel": "test_kernel", "seconds": 0.)"), 0U);
}

TEST_F(Deadlock, TheFirstVerdictStays) {
  const LoneJob job;
  std::array<char, 16> text{};
  EXPECT_EQ(tdist_rt_verdict(text.data(), text.size()), 1);
  ASSERT_EQ(tdist_rt_judge("first"), 0);
  ASSERT_EQ(tdist_rt_judge("second"), 0);
  EXPECT_EQ(tdist_rt_verdict(text.data(), text.size()), 6);
  EXPECT_STREQ(text.data(), "first");
}

} // namespace
} // namespace tdist::test
