// Kernels of several rank processes that notify and wait.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tdist::test {
namespace {

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Count, Ranks, testing::Values(2, 4, 8));

constexpr std::int64_t kElements = 32;

template <class Word>
std::int32_t notify(std::int64_t address, std::int32_t pe, Word value, std::int32_t op) {
  if constexpr (sizeof(Word) == 4) {
    return tdist_sim_notify_i32(address, pe, value, op, 1, &kHere);
  } else {
    return tdist_sim_notify_i64(address, pe, value, op, 1, &kHere);
  }
}

template <class Word> std::int32_t wait(std::int64_t address, std::int32_t count, Word value) {
  if constexpr (sizeof(Word) == 4) {
    return tdist_sim_wait_i32(address, count, value, 0, 1, &kHere);
  } else {
    return tdist_sim_wait_i64(address, count, value, 0, 1, &kHere);
  }
}

/// args: data, signals, round. Writes a row on PE 0 and notifies it, in a slot of its own.
template <class Word>
void sendRow(const std::uint64_t *args, const std::int32_t * /*grid*/,
             const std::int32_t * /*pid*/) {
  const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
  const auto round = static_cast<Word>(args[2]);
  auto *row = pointer<std::int64_t>(args[0]) + tdist_sim_delta(operand(args[0]), 0, 8, &kHere) +
              me * kElements;
  for (std::int32_t index = 0; index < kElements; ++index) {
    row[index] = 1000 * me + index + round;
  }
  notify<Word>(slot(args[1], me - 1), 0, round, kNotifySet);
}

template <class Word>
void collectRows(const std::uint64_t *args, const std::int32_t * /*grid*/,
                 const std::int32_t * /*pid*/) {
  const std::int32_t pes = tdist_sim_n_pes(-1, &kHere);
  const auto round = static_cast<Word>(args[2]);
  EXPECT_EQ(wait<Word>(operand(args[1]), pes - 1, round), 0);
  const auto *rows = pointer<std::int64_t>(args[0]);
  for (std::int32_t source = 1; source < pes; ++source) {
    for (std::int32_t index = 0; index < kElements; ++index) {
      ASSERT_EQ(rows[source * kElements + index], 1000 * source + index + round);
    }
  }
}

template <class Word> void manyToOne(int count) {
  runRanks(count, [count](int rank) {
    const std::uint64_t data = allocate(rank, std::int64_t{count} * kElements * 8);
    const std::uint64_t signals = allocate(rank, count * kSlotBytes);
    hostBarrier();
    for (std::uint64_t round = 1; round <= 30; ++round) { // signals are used again, with new values
      launch(rank == 0 ? collectRows<Word> : sendRow<Word>, {1, 1, 1}, {data, signals, round});
      hostBarrier();
    }
  });
}

TEST_P(Ranks, ManySendToOneWithInt32Signals) { manyToOne<std::int32_t>(GetParam()); }
TEST_P(Ranks, ManySendToOneWithInt64Signals) { manyToOne<std::int64_t>(GetParam()); }

constexpr std::int32_t kAdds = 10'000; // long enough for ranks to be at it at once

void addToOne(const std::uint64_t *args, const std::int32_t * /*grid*/,
              const std::int32_t * /*pid*/) {
  for (int round = 0; round < kAdds; ++round) {
    tdist_sim_notify_i32(operand(args[0]), 0, 1, kNotifyAdd, 1, &kHere);
  }
  if (tdist_sim_my_pe(-1, &kHere) == 0) {
    tdist_sim_wait_i32(operand(args[0]), 1, kAdds * 3 * tdist_sim_n_pes(-1, &kHere), 0, 1, &kHere);
  }
}

TEST_P(Ranks, AddsAreNotLost) {
  runRanks(GetParam(), [](int rank) {
    const std::uint64_t counter = allocate(rank, 64);
    hostBarrier();
    launch(addToOne, {3, 1, 1}, {counter});
  });
}

constexpr std::int64_t kLaps = 50;

void passRoundRing(const std::uint64_t *args, const std::int32_t * /*grid*/,
                   const std::int32_t * /*pid*/) {
  const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
  const std::int32_t next = (me + 1) % tdist_sim_n_pes(-1, &kHere);
  const std::int64_t delta = tdist_sim_delta(operand(args[0]), next, 8, &kHere);
  auto *value = pointer<std::int64_t>(args[0]);
  for (std::int64_t lap = 1; lap <= kLaps; ++lap) {
    if (me != 0) {
      tdist_sim_wait_i64(operand(args[1]), 1, lap, 0, 1, &kHere);
    }
    value[delta] = value[0] + 1;
    tdist_sim_notify_i64(operand(args[1]), next, lap, kNotifySet, 1, &kHere);
    if (me == 0) {
      tdist_sim_wait_i64(operand(args[1]), 1, lap, 0, 1, &kHere);
    }
  }
}

TEST_P(Ranks, RingPassesAValueOn) {
  runRanks(GetParam(), [](int rank) {
    const std::uint64_t value = allocate(rank, 64);
    const std::uint64_t signal = allocate(rank, 64);
    hostBarrier();
    launch(passRoundRing, {1, 1, 1}, {value, signal});
    hostBarrier();
    EXPECT_EQ(*pointer<std::int64_t>(value),
              (kLaps - 1) * GetParam() + (rank == 0 ? GetParam() : rank));
  });
}

void putWithSignal(const std::uint64_t *args, const std::int32_t * /*grid*/,
                   const std::int32_t * /*pid*/) {
  // Every PE puts a block on the next one and waits for the one it gets.
  const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
  const std::int32_t pes = tdist_sim_n_pes(-1, &kHere);
  const std::int32_t next = (me + 1) % pes;
  const std::int32_t previous = (me + pes - 1) % pes;
  auto *source = pointer<std::int64_t>(args[0]);
  const auto *target = pointer<std::int64_t>(args[1]);
  constexpr std::int32_t kBytes = kElements * 8;
  for (std::int32_t round = 1; round <= 50; ++round) {
    for (std::int32_t index = 0; index < kElements; ++index) {
      source[index] = me * 1000 + index + round;
    }
    tdist_sim_putmem_signal(operand(args[1]), operand(args[0]), kBytes, operand(args[2]), 1,
                            kSignalAdd, next, &kHere);
    tdist_sim_signal_wait_until(operand(args[2]), kGe, round, &kHere);
    for (std::int32_t index = 0; index < kElements; ++index) {
      ASSERT_EQ(target[index], previous * 1000 + index + round);
    }
    tdist_sim_getmem(operand(args[0]), operand(args[1]), kBytes, next, &kHere);
    ASSERT_EQ(source[3], me * 1000 + 3 + round) << "what was put, got back";
    tdist_sim_barrier_all(0, &kHere);
  }
}

TEST_P(Ranks, PutSignalsWhenTheDataIsThere) {
  runRanks(GetParam(), [](int rank) {
    const std::uint64_t source = allocate(rank, kElements * 8);
    const std::uint64_t target = allocate(rank, kElements * 8);
    const std::uint64_t signal = allocate(rank, 64);
    hostBarrier();
    launch(putWithSignal, {1, 1, 1}, {source, target, signal});
  });
}

/// Message passing, the litmus test: whoever sees the signal sees the data. Plain stores and loads
/// on purpose, with the data in many cache lines.
void passMessages(const std::uint64_t *args, const std::int32_t * /*grid*/,
                  const std::int32_t * /*pid*/) {
  constexpr std::int64_t kMessages = 2000;
  constexpr std::int64_t kStep = 8; // int64 in a cache line
  auto *data = pointer<std::int64_t>(args[0]);
  const bool isSender = tdist_sim_my_pe(-1, &kHere) == 0;
  const std::int64_t delta = tdist_sim_delta(operand(args[0]), 1, 8, &kHere);
  for (std::int64_t message = 1; message <= kMessages; ++message) {
    if (isSender) {
      for (std::int32_t line = 0; line < 4; ++line) {
        data[delta + line * kStep] = message;
      }
      tdist_sim_notify_i64(operand(args[1]), 1, message, kNotifySet, 1, &kHere);
      tdist_sim_wait_i64(slot(args[1], 1), 1, message, 0, 1, &kHere);
    } else {
      tdist_sim_wait_i64(operand(args[1]), 1, message, 0, 1, &kHere);
      for (std::int32_t line = 3; line >= 0; --line) {
        ASSERT_EQ(data[line * kStep], message);
      }
      tdist_sim_notify_i64(slot(args[1], 1), 0, message, kNotifySet, 1, &kHere);
    }
  }
}

TEST(RanksOrder, WhoSeesTheSignalSeesTheData) {
  runRanks(2, [](int rank) {
    const std::uint64_t data = allocate(rank, 4 * kSlotBytes);
    const std::uint64_t signals = allocate(rank, 2 * kSlotBytes);
    hostBarrier();
    launch(passMessages, {1, 1, 1}, {data, signals});
  });
}

TEST(RanksOrder, SleepersAreWoken) {
  runRanks(2, [](int rank) {
    const std::uint64_t signals = allocate(rank, 2 * kSlotBytes);
    hostBarrier();
    const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
      const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
      for (std::int32_t round = 1; round <= 200; ++round) {
        if (me == 0) {
          usleep(200); // the other one is asleep, or is about to fall asleep
          tdist_sim_notify_i32(operand(args[0]), 1, round, kNotifySet, 1, &kHere);
          tdist_sim_wait_i32(operand(args[0]), 1, round, 0, 1, &kHere);
        } else {
          tdist_sim_wait_i32(operand(args[0]), 1, round, 0, 1, &kHere);
          tdist_sim_notify_i32(operand(args[0]), 0, round, kNotifySet, 1, &kHere);
        }
      }
    };
    launch(kernel, {1, 1, 1}, {signals});
  });
}

TEST(RanksOrder, AStoreWithoutARingIsSeen) {
  runRanks(2, [](int rank) {
    const std::uint64_t signal = allocate(rank, 64);
    hostBarrier();
    const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
      if (tdist_sim_my_pe(-1, &kHere) == 0) {
        usleep(30'000);
        const std::int64_t delta = tdist_sim_delta(operand(args[0]), 1, 4, &kHere);
        std::atomic_ref(pointer<std::int32_t>(args[0])[delta]).store(1, std::memory_order_relaxed);
      } else {
        tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere);
      }
    };
    launch(kernel, {1, 1, 1}, {signal});
  });
}

void allNotifyAll(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  // Program p of each PE exchanges with program p of all others.
  const std::int32_t me = tdist_sim_my_pe(-1, &kHere);
  const std::int32_t pes = tdist_sim_n_pes(-1, &kHere);
  for (std::int32_t round = 1; round <= 20; ++round) {
    for (std::int32_t pe = 0; pe < pes; ++pe) {
      tdist_sim_notify_i32(slot(args[0], std::int64_t{pid[0]} * pes + me), pe, round, kNotifySet, 1,
                           &kHere);
    }
    tdist_sim_wait_i32(slot(args[0], std::int64_t{pid[0]} * pes), pes, round, 0, 1, &kHere);
    tdist_sim_barrier_all(0, &kHere); // nobody may overwrite a value that another has not seen
  }
  EXPECT_EQ(grid[1], 1);
}

TEST_P(Ranks, ManyProgramsExchange) {
  runRanks(GetParam(), [](int rank) {
    constexpr std::int32_t kPrograms = 20;
    const std::uint64_t signals = allocate(rank, std::int64_t{kPrograms} * GetParam() * kSlotBytes);
    hostBarrier();
    launch(allNotifyAll, {kPrograms, 1, 1}, {signals});
  });
}

} // namespace
} // namespace tdist::test
