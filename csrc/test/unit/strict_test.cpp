// The strict mode: what becomes visible when, on one PE.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace tdist::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Strict : public testing::TestWithParam<std::uint64_t> {
protected:
  Strict() { tdist_rt_strict(1, GetParam()); }
  ~Strict() override { tdist_rt_strict(0, 0); }

  const Deadline deadline;
};

#define TDIST_KERNEL                                                                               \
  [](const std::uint64_t *args [[maybe_unused]], const std::int32_t *, const std::int32_t *)

void store(std::uint64_t address, std::int64_t value) {
  tdist_sim_store(pointer<void>(address), &value, sizeof value, &kHere);
}

std::int64_t load(std::uint64_t address) {
  std::int64_t value = 0;
  tdist_sim_load(pointer<void>(address), &value, sizeof value, &kHere);
  return value;
}

/// What others see there now.
std::int64_t seen(std::uint64_t address) { return *pointer<std::int64_t>(address); }

TEST_P(Strict, FreshSymmetricMemoryIsPoisoned) {
  const LoneJob job;
  const std::int64_t offset = tdist_rt_heap_alloc(67, 64);
  ASSERT_EQ(offset, 0);
  const auto *memory = static_cast<const char *>(tdist_rt_heap_base(0));
  double number = 0;
  float half = 0;
  std::memcpy(&number, memory + 8, sizeof number);
  std::memcpy(&half, memory + 4, sizeof half);
  EXPECT_TRUE(std::isnan(number));
  EXPECT_TRUE(std::isnan(half));
  EXPECT_EQ(memory[66], '\xfd');
}

TEST_P(Strict, StoresAreSeenByTheProgramAtOnceAndByOthersBehindASignal) {
  const LoneJob job;
  const std::uint64_t data = allocate(0, 1024);
  const std::uint64_t signal = allocate(0, 64);
  launch(
      TDIST_KERNEL {
        for (std::uint64_t i = 0; i < 128; ++i) {
          store(args[0] + 8 * i, static_cast<std::int64_t>(i + 1));
        }
        EXPECT_EQ(load(args[0] + 8), 2);
        EXPECT_EQ(load(args[0] + 4), std::int64_t{2} << 32) << "parts of two stores";
        EXPECT_EQ(seen(args[0] + 8), 0);
        tdist_sim_notify_i64(operand(args[1]), 0, 1, kNotifySet, 1, &kHere);
        for (std::uint64_t i = 0; i < 128; ++i) {
          EXPECT_EQ(seen(args[0] + 8 * i), static_cast<std::int64_t>(i + 1));
        }
      },
      {1, 1, 1}, {data, signal});
}

TEST_P(Strict, AtomicsFenceAndTheEndOfAProgramRelease) {
  const LoneJob job;
  const std::uint64_t data = allocate(0, 64);
  launch(
      TDIST_KERNEL {
        store(args[0], 1);
        tdist_sim_release(&kHere);
        EXPECT_EQ(seen(args[0]), 1);
        store(args[0], 2);
        EXPECT_EQ(seen(args[0]), 1);
        tdist_sim_fence(0, &kHere);
        EXPECT_EQ(seen(args[0]), 2);
        store(args[0], 3);
        EXPECT_EQ(seen(args[0]), 2);
      },
      {1, 1, 1}, {data});
  EXPECT_EQ(seen(data), 3);
}

TEST_P(Strict, StoresGetThereWhileTheirProgramWaits) {
  const LoneJob job;
  const std::uint64_t words = allocate(0, 2 * kSlotBytes);
  launch(
      [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *pid) {
        store(args[0] + kSlotBytes * pid[0], 1);
        tdist_sim_wait_i64(slot(args[0], 1 - pid[0]), 1, 1, 0, 1, &kHere);
      },
      {2, 1, 1}, {words});
}

TEST_P(Strict, CopiesWithNbiWaitForQuiet) {
  const LoneJob job;
  const std::uint64_t target = allocate(0, 64);
  const std::uint64_t source = allocate(0, 64);
  *pointer<std::int64_t>(source) = 7;
  launch(
      TDIST_KERNEL {
        std::int64_t back = 0;
        tdist_sim_putmem_nbi(operand(args[0]), operand(args[1]), 8, 0, &kHere);
        tdist_sim_notify_i64(operand(args[1]) + 8, 0, 1, kNotifySet, 1, &kHere);
        EXPECT_EQ(seen(args[0]), 0) << "a signal is no quiet";
        tdist_sim_getmem_nbi(operand(addressOf(&back)), operand(args[1]), 8, 0, &kHere);
        EXPECT_EQ(back, 0);
        tdist_sim_quiet(0, &kHere);
        EXPECT_EQ(seen(args[0]), 7);
        EXPECT_EQ(back, 7);
      },
      {1, 1, 1}, {target, source});
}

TEST_P(Strict, ASignalComesBehindItsData) {
  const LoneJob job;
  const std::uint64_t target = allocate(0, 64);
  const std::uint64_t source = allocate(0, 64);
  const std::uint64_t signal = allocate(0, 64);
  *pointer<std::int64_t>(source) = 7;
  launch(
      TDIST_KERNEL {
        tdist_sim_putmem_signal_nbi(operand(args[0]), operand(args[1]), 8, operand(args[2]), 1,
                                    kSignalSet, 0, &kHere);
        EXPECT_EQ(tdist_sim_signal_wait_until(operand(args[2]), kEq, 1, &kHere), 1);
        EXPECT_EQ(seen(args[0]), 7);
      },
      {1, 1, 1}, {target, source, signal});
}

TEST_P(Strict, ProgramsSeeTheirAccessesInOrder) {
  const LoneJob job;
  const std::uint64_t target = allocate(0, 64);
  const std::uint64_t source = allocate(0, 64);
  launch(
      TDIST_KERNEL {
        store(args[1], 5);
        tdist_sim_putmem(operand(args[0]), operand(args[1]), 8, 0, &kHere);
        EXPECT_EQ(seen(args[0]), 5) << "what was stored, is put";
        store(args[0], 6);
        tdist_sim_putmem(operand(args[0]), operand(args[1]), 8, 0, &kHere);
        tdist_sim_fence(0, &kHere);
        EXPECT_EQ(seen(args[0]), 5) << "the put came last";
        store(args[0], 9);
        tdist_sim_getmem(operand(args[1]), operand(args[0]), 8, 0, &kHere);
        EXPECT_EQ(load(args[1]), 9);
      },
      {1, 1, 1}, {target, source});
}

TEST_P(Strict, AccessOutsideOfLiveMemoryFails) {
  const LoneJob job;
  const std::uint64_t data = allocate(0, 100);
  const auto kStore = TDIST_KERNEL { store(args[0], 1); };
  EXPECT_THAT(failureOf(kStore, {1, 1, 1}, {data + 96}),
              AllOf(HasSubstr("store: address"), HasSubstr("are past its end"),
                    HasSubstr("test_kernel, program (0,0,0), kernel.py:41, rank 0")));
  EXPECT_THAT(failureOf(TDIST_KERNEL { (void)load(args[0]); }, {1, 1, 1}, {data - 8}),
              HasSubstr("load: address"));
  ASSERT_EQ(tdist_rt_heap_free(0), 0);
  EXPECT_THAT(failureOf(kStore, {1, 1, 1}, {data}), HasSubstr("it was freed"));
}

TEST_P(Strict, CopiesOfTheHostWaitForQuietOrABarrier) {
  const LoneJob job;
  const std::uint64_t target = allocate(0, 64);
  std::int64_t local = 3;
  std::int64_t back = 0;
  ASSERT_EQ(tdist_rt_put_nbi(pointer<void>(target), &local, 8, 0), 0);
  EXPECT_EQ(seen(target), 0);
  ASSERT_EQ(tdist_rt_quiet(), 0);
  EXPECT_EQ(seen(target), 3);
  ASSERT_EQ(tdist_rt_get_nbi(&back, pointer<void>(target), 8, 0), 0);
  EXPECT_EQ(back, 0);
  hostBarrier();
  EXPECT_EQ(back, 3);
  EXPECT_EQ(tdist_rt_put_nbi(pointer<void>(target), &local, 65, 0), -1) << "at once";
}

INSTANTIATE_TEST_SUITE_P(Seeds, Strict, testing::Values(1, 2, 3));

} // namespace
} // namespace tdist::test
