// Device functions on one PE: what they do, and which operands they refuse.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <array>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>

namespace tdist::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Device : public testing::Test {
  const Deadline deadline;
};

/// Runs a kernel of one program on the operands; a captureless lambda reads them from args.
std::string failureOfOne(tdist_kernel_fn kernel, const Arguments &arguments) {
  return failureOf(kernel, {1, 1, 1}, arguments);
}

void launchOne(tdist_kernel_fn kernel, const Arguments &arguments) {
  launch(kernel, {1, 1, 1}, arguments);
}

#define TDIST_KERNEL                                                                               \
  [](const std::uint64_t *args [[maybe_unused]], const std::int32_t *, const std::int32_t *)

TEST_F(Device, KnowsRanks) {
  const Memories memories(3);
  ASSERT_EQ(tdist_rt_attach(1, 3, memories.fds(), kHeapBytes), 0);
  std::array<std::int32_t, 6> seen{};
  launchOne(
      TDIST_KERNEL {
        auto *out = pointer<std::int32_t>(args[0]);
        out[0] = tdist_sim_my_pe(-1, &kHere);
        out[1] = tdist_sim_n_pes(-1, &kHere);
        out[2] = tdist_sim_my_pe(0, &kHere);
        out[3] = tdist_sim_n_pes(0, &kHere);
        out[4] = tdist_sim_team_my_pe(0, &kHere);
        out[5] = tdist_sim_team_n_pes(0, &kHere);
      },
      {addressOf(seen.data())});
  EXPECT_EQ(seen, (std::array<std::int32_t, 6>{1, 3, 1, 3, 1, 3}));
  EXPECT_THAT(failureOfOne(TDIST_KERNEL { tdist_sim_my_pe(1, &kHere); }, {}),
              HasSubstr("axis 1 does not exist"));
  EXPECT_THAT(failureOfOne(TDIST_KERNEL { tdist_sim_team_n_pes(2, &kHere); }, {}),
              HasSubstr("team 2 does not exist"));
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Device, AnAssertionEndsTheLaunchWithItsText) {
  static const char text[] = "n is odd";
  EXPECT_THAT(
      failureOfOne(
          TDIST_KERNEL { tdist_sim_assert_failed(static_cast<std::int64_t>(args[0]), &kHere); },
          {addressOf(text)}),
      AllOf(HasSubstr("device_assert failed: n is odd"), HasSubstr("program (0,0,0)")));
}

TEST_F(Device, DeltaLeadsToTheSameObjectOfAnotherPe) {
  const Memories memories(3);
  ASSERT_EQ(tdist_rt_attach(1, 3, memories.fds(), kHeapBytes), 0);
  const std::uint64_t object = allocate(1, 256);
  std::array<std::int64_t, 4> deltas{};
  launchOne(
      TDIST_KERNEL {
        auto *out = pointer<std::int64_t>(args[1]);
        out[0] = tdist_sim_delta(operand(args[0]), 0, 8, &kHere) * 8;
        out[1] = tdist_sim_delta(operand(args[0]), 1, 8, &kHere);
        out[2] = tdist_sim_delta(operand(args[0]) + 255, 2, 1, &kHere);
        out[3] = tdist_sim_delta(operand(args[0]) + 64, 2, 4, &kHere) * 4;
      },
      {object, addressOf(deltas.data())});
  const std::int64_t stride = tdist_rt_segment_bytes(kHeapBytes);
  EXPECT_EQ(deltas, (std::array<std::int64_t, 4>{-stride, 0, stride, stride}));
  EXPECT_EQ(addressOf(tdist_rt_heap_base(1)) + deltas[0], addressOf(tdist_rt_heap_base(0)));
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Device, NotifySetsAndAdds) {
  const LoneJob job;
  const std::uint64_t words = allocate(0, 2 * kSlotBytes);
  launchOne(
      TDIST_KERNEL {
        tdist_sim_notify_i32(slot(args[0], 0), 0, 5, kNotifySet, 1, &kHere);
        tdist_sim_notify_i32(slot(args[0], 0), 0, -7, kNotifyAdd, 1, &kHere);
        tdist_sim_notify_i64(slot(args[0], 1), 0, INT64_C(1) << 40, kNotifySet, 1, &kHere);
        tdist_sim_notify_i64(slot(args[0], 1), 0, 3, kNotifyAdd, 1, &kHere);
        tdist_sim_wait_i32(slot(args[0], 0), 1, -2, 0, 1, &kHere);
        tdist_sim_wait_i64(slot(args[0], 1), 1, (INT64_C(1) << 40) + 3, 0, 1, &kHere);
      },
      {words});
  const auto *bytes = pointer<std::int32_t>(words);
  EXPECT_EQ(bytes[0], -2);
  EXPECT_EQ(bytes[1], 0) << "an int32 signal has four bytes";
}

TEST_F(Device, SignalOpsCountFromZeroAndNotifyFromOne) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  launchOne(
      TDIST_KERNEL {
        tdist_sim_signal_op(operand(args[0]), 5, kSignalSet, 0, &kHere);
        tdist_sim_signal_op(operand(args[0]), 6, kSignalAdd, 0, &kHere);
        tdist_sim_wait_i32(operand(args[0]), 1, 11, 0, 1, &kHere);
      },
      {word});
  EXPECT_THAT(
      failureOfOne(TDIST_KERNEL { tdist_sim_signal_op(operand(args[0]), 5, 2, 0, &kHere); },
                   {word}),
      HasSubstr("signal_op: signal operation 2 does not exist: expected 0 (set) or 1 (add)"));
  EXPECT_THAT(
      failureOfOne(TDIST_KERNEL { tdist_sim_notify_i32(operand(args[0]), 0, 5, 0, 1, &kHere); },
                   {word}),
      HasSubstr("notify: signal operation 0 does not exist: expected 1 (set) or 2 (add)"));
  EXPECT_EQ(*pointer<std::int32_t>(word), 11);
}

TEST_F(Device, WaitForNothingReturnsAtOnce) {
  const LoneJob job;
  launchOne(
      TDIST_KERNEL {
        EXPECT_EQ(tdist_sim_wait_i32(operand(args[0]), 0, 1, 0, 1, &kHere), 0);
        EXPECT_EQ(tdist_sim_wait_i64(0, 0, 1, 0, 1, &kHere), 0);
      },
      {allocate(0, 64)});
  EXPECT_THAT(failureOfOne(TDIST_KERNEL { tdist_sim_wait_i32(0, -1, 1, 0, 1, &kHere); }, {}),
              HasSubstr("numBarriers is -1"));
}

TEST_F(Device, WaitReadsEvery64Bytes) {
  const LoneJob job;
  const std::uint64_t words = allocate(0, 4 * kSlotBytes);
  for (int index = 0; index < 4; ++index) {
    *pointer<std::int64_t>(static_cast<std::uint64_t>(slot(words, index))) = 9;
  }
  launchOne(TDIST_KERNEL { tdist_sim_wait_i64(operand(args[0]), 4, 9, 0, 1, &kHere); }, {words});
  *pointer<std::int64_t>(static_cast<std::uint64_t>(slot(words, 3))) = 8;
  Launched launched(TDIST_KERNEL { tdist_sim_wait_i64(operand(args[0]), 4, 9, 0, 1, &kHere); },
                    {1, 1, 1}, {words});
  EXPECT_EQ(launched.run(0), 1) << "the last word is not as wanted";
}

TEST_F(Device, ComparisonsHoldAsTheirNamesSay) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  struct Case {
    std::int32_t compare;
    bool below;
    bool equal;
    bool above;
  };
  const auto kernel = TDIST_KERNEL {
    EXPECT_EQ(tdist_sim_signal_wait_until(operand(args[0]), static_cast<std::int32_t>(args[1]), -3,
                                          &kHere),
              *pointer<std::int32_t>(args[0]));
  };
  for (const Case &test : {Case{kEq, false, true, false}, Case{kNe, true, false, true},
                           Case{kGt, false, false, true}, Case{kGe, false, true, true},
                           Case{kLt, true, false, false}, Case{kLe, true, true, false}}) {
    const std::array<std::pair<std::int32_t, bool>, 3> values{
        {{-4, test.below}, {-3, test.equal}, {1, test.above}}};
    for (const auto &[value, holds] : values) {
      *pointer<std::int32_t>(word) = value;
      Launched launched(kernel, {1, 1, 1}, {word, static_cast<std::uint64_t>(test.compare)});
      EXPECT_EQ(launched.run(0), holds ? 0 : 1) << value << " with comparison " << test.compare;
    }
  }
  EXPECT_THAT(
      failureOfOne(TDIST_KERNEL { tdist_sim_signal_wait_until(operand(args[0]), 6, 0, &kHere); },
                   {word}),
      HasSubstr("comparison 6 does not exist"));
}

TEST_F(Device, CopiesAndSignals) {
  const LoneJob job;
  const std::uint64_t object = allocate(0, 256);
  const std::uint64_t signal = allocate(0, 64);
  std::array<char, 256> local{};
  local.fill('x');
  std::array<char, 256> back{};
  launchOne(
      TDIST_KERNEL {
        tdist_sim_putmem(operand(args[0]), operand(args[1]), 100, 0, &kHere);
        tdist_sim_putmem_nbi(operand(args[0]) + 100, operand(args[1]), 1, 0, &kHere);
        tdist_sim_putmem_signal(operand(args[0]) + 200, operand(args[1]), 50, operand(args[3]), 4,
                                kSignalSet, 0, &kHere);
        tdist_sim_putmem_signal_nbi(operand(args[0]) + 250, operand(args[1]), 6, operand(args[3]),
                                    5, kSignalAdd, 0, &kHere);
        tdist_sim_putmem(operand(args[0]), 0, 0, 0, &kHere);
        tdist_sim_fence(0, &kHere);
        tdist_sim_quiet(0, &kHere);
        tdist_sim_getmem(operand(args[2]), operand(args[0]), 128, 0, &kHere);
        tdist_sim_getmem_nbi(operand(args[2]) + 128, operand(args[0]) + 128, 128, 0, &kHere);
        EXPECT_EQ(tdist_sim_signal_wait_until(operand(args[3]), kEq, 9, &kHere), 9);
        tdist_sim_int_p(operand(args[3]) + 4, 77, 0, &kHere);
      },
      {object, addressOf(local.data()), addressOf(back.data()), signal});
  std::string expected(256, '\0');
  expected.replace(0, 101, 101, 'x');
  expected.replace(200, 56, 56, 'x');
  EXPECT_EQ(std::string(back.data(), back.size()), expected);
  EXPECT_EQ(pointer<std::int32_t>(signal)[1], 77);
  EXPECT_THAT(
      failureOfOne(
          TDIST_KERNEL { tdist_sim_putmem(operand(args[0]), operand(args[0]), -4, 0, &kHere); },
          {object}),
      HasSubstr("putmem: -4 bytes cannot be copied"));
}

// What is wrong with an address, in words of its own each.

constexpr auto kNotify = TDIST_KERNEL {
  tdist_sim_notify_i64(operand(args[0]), static_cast<std::int32_t>(args[1]), 1, kNotifySet, 1,
                       &kHere);
};
constexpr auto kWaitForTwo = TDIST_KERNEL {
  tdist_sim_wait_i64(operand(args[0]), 2, 1, 0, 1, &kHere);
};
constexpr auto kDelta = TDIST_KERNEL { tdist_sim_delta(operand(args[0]), 0, 4, &kHere); };
constexpr auto kPut = TDIST_KERNEL {
  tdist_sim_putmem(operand(args[0]), operand(args[1]), static_cast<std::int32_t>(args[2]), 0,
                   &kHere);
};
constexpr auto kGet = TDIST_KERNEL {
  tdist_sim_getmem(operand(args[0]), operand(args[1]), static_cast<std::int32_t>(args[2]), 0,
                   &kHere);
};

TEST_F(Device, RefusesAPeThatDoesNotExist) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 64);
  for (const std::int64_t pe : {-1, 1}) {
    EXPECT_THAT(failureOfOne(kNotify, {word, static_cast<std::uint64_t>(pe)}),
                AllOf(HasSubstr("notify: PE " + std::to_string(pe) + " does not exist"),
                      HasSubstr("kernel.py:41, rank 0")));
  }
  EXPECT_THAT(
      failureOfOne(TDIST_KERNEL { tdist_sim_delta(operand(args[0]), 7, 4, &kHere); }, {word}),
      HasSubstr("symm_at: PE 7 does not exist: expected 0 to 0"));
  EXPECT_EQ(*pointer<std::int64_t>(word), 0);
}

TEST_F(Device, RefusesLocalMemory) {
  const LoneJob job;
  std::int64_t local = 0;
  for (const auto kernel : {+kNotify, +kWaitForTwo, +kDelta}) {
    EXPECT_THAT(failureOfOne(kernel, {addressOf(&local), 0}),
                HasSubstr("is local memory, not symmetric"));
  }
  EXPECT_THAT(failureOfOne(kNotify, {0, 0}), HasSubstr("address 0x0 is local memory"));
}

TEST_F(Device, RefusesTheHeapOfAnotherPe) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0);
  const std::uint64_t word = allocate(0, 64);
  const std::uint64_t other = word + static_cast<std::uint64_t>(tdist_rt_segment_bytes(kHeapBytes));
  for (const auto kernel : {+kNotify, +kWaitForTwo, +kDelta}) {
    EXPECT_THAT(failureOfOne(kernel, {other, 0}), HasSubstr("is in the heap of PE 1 (offset 0)"));
  }
  EXPECT_THAT(failureOfOne(kPut, {word, other, 4}), HasSubstr("is in the heap of PE 1"));
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Device, RefusesWhatIsPastTheEnd) {
  const LoneJob job;
  const std::uint64_t block = allocate(0, 100);
  const std::string inBlock = "offset 96 of PE 0's symmetric heap, is in the allocation of 100 "
                              "bytes at offset 0, and 8 bytes from there are past its end";
  EXPECT_THAT(failureOfOne(kNotify, {block + 96, 0}), HasSubstr(inBlock));
  EXPECT_THAT(failureOfOne(kWaitForTwo, {block + 40, 0}), HasSubstr("72 bytes from there"))
      << "the second word is 64 bytes further";
  const std::uint64_t heapEnd = addressOf(tdist_rt_heap_base(0)) + kHeapBytes;
  EXPECT_THAT(failureOfOne(kDelta, {heapEnd - 4}), HasSubstr("never allocated"));
  EXPECT_THAT(failureOfOne(kDelta, {addressOf(tdist_rt_heap_base(0)) - 4}),
              HasSubstr("4 bytes before the beginning"));
  std::array<char, 256> local{};
  EXPECT_THAT(failureOfOne(kPut, {block, addressOf(local.data()), 101}), HasSubstr("101 bytes"));
  EXPECT_THAT(failureOfOne(kGet, {addressOf(local.data()), block + 1, 100}), HasSubstr("offset 1"));
}

TEST_F(Device, KnowsTheEndOfAHeapThatFillsNoSegment) {
  const LoneJob job(1000);
  (void)allocate(0, 1000);
  EXPECT_THAT(failureOfOne(kDelta, {addressOf(tdist_rt_heap_base(0)) + 1024}),
              HasSubstr("is past the end of the heap's 1000 bytes"));
}

TEST_F(Device, RefusesFreedMemory) {
  const LoneJob job;
  (void)allocate(0, 64);
  const std::uint64_t freed = allocate(0, 256);
  (void)allocate(0, 64);
  ASSERT_EQ(tdist_rt_heap_free(64), 0);
  EXPECT_THAT(
      failureOfOne(kNotify, {freed, 0}),
      HasSubstr("offset 64 of PE 0's symmetric heap, is in no live allocation: it was freed"));
  EXPECT_THAT(failureOfOne(kGet, {freed, freed, 4}), HasSubstr("it was freed"));
  EXPECT_THAT(failureOfOne(kPut, {addressOf(tdist_rt_heap_base(0)), freed, 4}),
              HasSubstr("it was freed"));
}

TEST_F(Device, RefusesLocalMemoryThatIsNotThere) {
  const LoneJob job;
  const std::uint64_t object = allocate(0, 1 << 20);
  constexpr std::size_t kPages = 8192;
  void *const mapped =
      mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::uint64_t local = addressOf(mapped);
  // Before the hole is there: the first launch makes threads, whose stacks would go into it.
  launchOne(kPut, {object, local, kPages});
  ASSERT_EQ(munmap(pointer<char>(local + kPages / 2), kPages / 2), 0);
  constexpr const char *kWhy = "are not all memory of this process";
  launchOne(kPut, {object, local, kPages / 2});
  EXPECT_THAT(failureOfOne(kPut, {object, local + 1, kPages / 2}), HasSubstr(kWhy));
  EXPECT_THAT(failureOfOne(kGet, {local + kPages / 2, object, 1}),
              AllOf(HasSubstr("getmem: the 1 bytes at local address"), HasSubstr(kWhy)));
  EXPECT_THAT(failureOfOne(kPut, {object, 0, 8}), HasSubstr("local address 0x0 are not all"));
  EXPECT_THAT(failureOfOne(kGet, {~std::uint64_t{3}, object, 8}), HasSubstr(kWhy));
  ASSERT_EQ(munmap(mapped, kPages / 2), 0);
}

TEST_F(Device, RefusesWhatTheTargetHasFreed) {
  runRanks(2, [](int rank) {
    const std::uint64_t kept = allocate(rank, 256);
    const std::uint64_t object = allocate(rank, 256);
    hostBarrier();
    const auto other = static_cast<std::uint64_t>(1 - rank);
    launchOne(kNotify, {object + 248, other});
    hostBarrier();
    if (rank == 1) {
      EXPECT_EQ(tdist_rt_heap_free(256), 0);
    }
    hostBarrier();
    if (rank == 0) {
      const auto why = AllOf(HasSubstr("at offset 256 of the symmetric heap are in an allocation "
                                       "of 256 bytes on PE 0, but in no live allocation of PE 1"),
                             HasSubstr("test_kernel, program (0,0,0), kernel.py:41, rank 0"));
      std::array<char, 8> local{};
      EXPECT_THAT(failureOfOne(kNotify, {object, 1}), why);
      EXPECT_THAT(
          failureOfOne(TDIST_KERNEL { tdist_sim_delta(operand(args[0]), 1, 4, &kHere); }, {object}),
          why);
      EXPECT_THAT(
          failureOfOne(
              TDIST_KERNEL { tdist_sim_getmem(operand(args[0]), operand(args[1]), 8, 1, &kHere); },
              {addressOf(local.data()), object}),
          why);
      EXPECT_THAT(failureOfOne(
                      TDIST_KERNEL {
                        tdist_sim_putmem_signal(operand(args[0]), operand(args[0]), 8,
                                                operand(args[1]), 1, kSignalSet, 1, &kHere);
                      },
                      {kept, object}),
                  why);
      launchOne(kNotify, {object, 0});
      launchOne(kNotify, {kept, 1});
    }
    hostBarrier();
    EXPECT_EQ(*pointer<std::int64_t>(kept), rank) << "only PE 1 was notified";
    if (rank == 1) { // at another time, in another slot of the table: live all the same
      EXPECT_EQ(tdist_rt_heap_alloc(64, 64), 256);
      EXPECT_EQ(tdist_rt_heap_alloc(128, 64), 320);
    }
    hostBarrier();
    if (rank == 0) {
      launchOne(kNotify, {object + 64 + 120, 1});
      EXPECT_THAT(failureOfOne(kNotify, {object + 64 + 128, 1}), HasSubstr("of PE 1"));
    }
    hostBarrier();
  });
}

TEST_F(Device, RefusesSignalsThatAreNotAligned) {
  const LoneJob job;
  const std::uint64_t word = allocate(0, 256);
  EXPECT_THAT(failureOfOne(kNotify, {word + 4, 0}), HasSubstr("no multiple of the word's 8 bytes"));
  EXPECT_THAT(failureOfOne(kWaitForTwo, {word + 2, 0}), HasSubstr("no multiple"));
}

TEST_F(Device, PutWithABadSignalCopiesNothing) {
  const LoneJob job;
  const std::uint64_t object = allocate(0, 64);
  std::int64_t local = 7;
  EXPECT_THAT(failureOfOne(
                  TDIST_KERNEL {
                    tdist_sim_putmem_signal(operand(args[0]), operand(args[1]), 8, operand(args[1]),
                                            1, kSignalSet, 0, &kHere);
                  },
                  {object, addressOf(&local)}),
              HasSubstr("putmem_signal: address"));
  EXPECT_EQ(*pointer<std::int64_t>(object), 0);
}

void cross(const std::uint64_t *args, const std::int32_t *grid, const std::int32_t *pid) {
  // Each program waits for the next one, the last for none: they end in reverse order.
  const std::int32_t program = pid[0];
  if (program + 1 < grid[0]) {
    tdist_sim_wait_i32(slot(args[0], program + 1), 1, 1, 0, 1, &kHere);
  }
  tdist_sim_notify_i32(slot(args[0], program), 0, 1, kNotifySet, 0, &kHere);
}

TEST_F(Device, ProgramsOfOneLaunchWaitForEachOther) {
  const LoneJob job;
  launch(cross, {kCores, 1, 1}, {allocate(0, kCores * kSlotBytes)});
}

TEST_F(Device, ProgramsThatWaitForQueuedOnesAreStuck) {
  const LoneJob job;
  Launched launched(cross, {kCores + 1, 1, 1}, {allocate(0, (kCores + 1) * kSlotBytes)});
  EXPECT_EQ(launched.run(50'000'000), 1) << "as on hardware";
}

TEST_F(Device, LaunchesWaitForEachOther) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 2 * kSlotBytes);
  Launched waits(TDIST_KERNEL { tdist_sim_wait_i32(slot(args[0], 0), 1, 1, 0, 1, &kHere); },
                 {1, 1, 1}, {signals});
  EXPECT_EQ(waits.run(0), 1);
  launchOne(TDIST_KERNEL { tdist_sim_notify_i32(slot(args[0], 0), 0, 1, kNotifySet, 0, &kHere); },
            {signals});
  EXPECT_EQ(waits.finish(), 0);
}

} // namespace
} // namespace tdist::test
