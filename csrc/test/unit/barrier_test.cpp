// barrier_all: all programs of the launches of all PEs.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <atomic>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace tdist::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Barrier : public testing::Test {
  const Deadline deadline;
};

constexpr std::int32_t kRounds = 20;

void countRounds(const std::uint64_t *args, const std::int32_t *grid,
                 const std::int32_t * /*pid*/) {
  const std::atomic_ref<std::int32_t> arrived(*pointer<std::int32_t>(args[0]));
  for (std::int32_t round = 1; round <= kRounds; ++round) {
    arrived.fetch_add(1, std::memory_order_relaxed);
    round % 2 == 0 ? tdist_sim_barrier_all(0, &kHere) : tdist_sim_barrier_all_vec(0, &kHere);
    EXPECT_EQ(arrived.load(std::memory_order_relaxed), round * grid[0]);
    tdist_sim_barrier_all(0, &kHere);
  }
}

TEST_F(Barrier, HoldsAllProgramsOfALaunch) {
  const LoneJob job;
  for (const std::int32_t programs : {1, 2, 7, kCores}) {
    std::int32_t arrived = 0;
    launch(countRounds, {programs, 1, 1}, {addressOf(&arrived)});
    EXPECT_EQ(arrived, kRounds * programs);
  }
}

void storeAndCheck(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  // Every program of every PE writes its own word on every PE; after the barrier all are there.
  const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
  const std::int32_t pes = tdist_sim_n_pes(-1, &kHere);
  const std::int32_t programs = grid[0];
  auto *own = pointer<std::int32_t>(args[0]);
  for (std::int32_t round = 1; round <= kRounds; ++round) {
    for (std::int32_t pe = 0; pe < pes; ++pe) {
      const std::int64_t delta = tdist_sim_delta(operand(args[0]), pe, 4, &kHere);
      own[delta + std::int64_t{me} * programs + pid[0]] = round;
    }
    tdist_sim_barrier_all(0, &kHere);
    for (std::int32_t word = 0; word < pes * programs; ++word) {
      ASSERT_EQ(own[word], round) << "word " << word << " on PE " << me;
    }
    tdist_sim_barrier_all(0, &kHere);
  }
}

class BarrierOfRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, BarrierOfRanks, testing::Values(2, 4, 8));

TEST_P(BarrierOfRanks, MakesAllStoresVisible) {
  runRanks(GetParam(), [](int rank) {
    constexpr std::int32_t kPrograms = 5;
    const std::uint64_t words = allocate(rank, std::int64_t{GetParam()} * kPrograms * 4);
    hostBarrier();
    launch(storeAndCheck, {kPrograms, 1, 1}, {words});
  });
}

TEST_F(Barrier, TakesGridsOfUnequalSize) {
  runRanks(3, [](int rank) {
    const auto kernel = [](const std::uint64_t *, const std::int32_t *, const std::int32_t *) {
      for (int round = 0; round < kRounds; ++round) {
        tdist_sim_barrier_all(0, &kHere);
      }
    };
    launch(kernel, {1 + 5 * rank, 1, 1});
  });
}

TEST_F(Barrier, WaitsForALateRank) {
  runRanks(2, [](int rank) {
    const std::uint64_t flag = allocate(rank, 64);
    hostBarrier();
    const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
      if (tdist_sim_my_pe(-1, &kHere) == 0) {
        tdist_sim_int_p(operand(args[0]), 1, 1, &kHere);
      }
      tdist_sim_barrier_all(0, &kHere);
      if (tdist_sim_my_pe(-1, &kHere) == 1) {
        EXPECT_EQ(*pointer<std::int32_t>(args[0]), 1);
      }
    };
    if (rank == 0) {
      usleep(50'000); // long enough for the other one to fall asleep
    }
    launch(kernel, {2, 1, 1}, {flag});
  });
}

void barrierOnce(const std::uint64_t * /*args*/, const std::int32_t * /*grid*/,
                 const std::int32_t * /*pid*/) {
  tdist_sim_barrier_all(0, &kHere);
}

TEST_F(Barrier, SaysThatQueuedProgramsCanNeverArrive) {
  const LoneJob job;
  EXPECT_THAT(failureOf(barrierOnce, {50, 1, 1}, {}, /*cores=*/kCores),
              AllOf(HasSubstr("barrier_all can never be passed: it waits for all 50 programs"),
                    HasSubstr("only 40 run at a time"), HasSubstr("kernel.py:41, rank 0")));
}

void barrierExceptProgram(const std::uint64_t *args, const std::int32_t * /*grid*/,
                          const std::int32_t *pid) {
  if (pid[0] != static_cast<std::int32_t>(args[0])) {
    tdist_sim_barrier_all_vec(0, &kHere);
  }
}

TEST_F(Barrier, SaysWhichProgramEndedWithoutIt) {
  const LoneJob job;
  for (const std::uint64_t absent : {0, 2, 3}) { // ends before, between, after the others arrive
    EXPECT_THAT(failureOf(barrierExceptProgram, {4, 1, 1}, {absent}),
                AllOf(HasSubstr("barrier_all_vec can never be passed: program (" +
                                std::to_string(absent) + ",0,0) of the same launch has ended"),
                      HasSubstr("kernel.py:41")));
  }
}

TEST_F(Barrier, OfARankThatDoesNotComeEndsSlices) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0);
  Launched launched(barrierOnce, {3, 1, 1});
  EXPECT_EQ(launched.run(30'000'000), 1);
  EXPECT_EQ(launched.run(0), 1);
  EXPECT_EQ(tdist_rt_detach(), 0);
}

} // namespace
} // namespace tdist::test
