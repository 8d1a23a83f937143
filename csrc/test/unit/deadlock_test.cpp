// That nobody can go on: found when it is so, and not before.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <array>
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
int lookSomeTimes(std::int32_t state) {
  constexpr int kTimes = 5;
  const std::uint8_t exited = 0;
  (void)tdist_rt_host_state(state);
  int found = 0;
  for (int look = 0; look < kTimes && found == 0; ++look) {
    if (tdist_rt_synchronize(kSliceNs) == 0) {
      break;
    }
    found = tdist_rt_look(&exited, 1);
  }
  (void)tdist_rt_host_state(TDIST_HOST_RUNS);
  return found;
}

TEST_F(Deadlock, IsFoundOnceNothingCanChange) {
  const LoneJob job;
  const std::uint64_t signal = allocate(0, 64);
  Launched launched(waitForOne, {2, 1, 1}, {signal});
  EXPECT_EQ(lookSomeTimes(TDIST_HOST_SYNCHRONIZES), 1);
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
