// Who waits for what, as JSON.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"

#include <atomic>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace tdist::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Describe : public testing::Test {
  const Deadline deadline;
};

std::string waits() {
  const std::int64_t needed = tdist_rt_describe_waits(nullptr, 0);
  EXPECT_GE(needed, 3) << tdist_rt_last_error();
  std::string text(static_cast<std::size_t>(2 * needed + 1000), '?');
  const std::int64_t written = tdist_rt_describe_waits(text.data(), std::ssize(text));
  EXPECT_LE(written, std::ssize(text));
  text.resize(static_cast<std::size_t>(written - 1));
  return text;
}

std::string waitsOf(std::int32_t pe) {
  const int needed = tdist_rt_peer_waits(pe, nullptr, 0);
  EXPECT_GE(needed, 3) << tdist_rt_last_error();
  std::string text(static_cast<std::size_t>(2 * needed + 1000), '?');
  const int written = tdist_rt_peer_waits(pe, text.data(), std::ssize(text));
  EXPECT_LE(written, std::ssize(text));
  text.resize(static_cast<std::size_t>(written - 1));
  return text;
}

std::int64_t count(const std::string &text, const std::string &part) {
  std::int64_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

void waitForThree(const std::uint64_t *args, const std::int32_t * /*grid*/,
                  const std::int32_t *pid) {
  tdist_sim_wait_i64(slot(args[0], pid[0]), 3, 5, 0, 1, &kHere);
}

TEST_F(Describe, NothingWithoutAJobOrAWait) {
  EXPECT_EQ(waits(), "[]");
  EXPECT_EQ(tdist_rt_peer_waits(0, nullptr, 0), -1);
  const LoneJob job;
  EXPECT_EQ(waits(), "[]");
}

TEST_F(Describe, TellsWhatAProgramWaitsFor) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 8 * kSlotBytes);
  std::atomic_ref(*pointer<std::int64_t>(signals)).store(5);
  std::atomic_ref(*pointer<std::int64_t>(signals + kSlotBytes)).store(4);
  Launched launched(waitForThree, {5, 1, 1}, {signals}, /*cores=*/2);
  EXPECT_EQ(launched.run(5'000'000), 1);
  const std::string text = waits();
  EXPECT_THAT(text, HasSubstr(R"("kernel": "test_kernel", "program": [0, 0, 0], )"
                              R"("file": "kernel.py", "line": 41, "primitive": "wait", )"
                              R"("address": )" +
                              std::to_string(signals + 64) +
                              R"(, "pe_offset": 64, "compare": "==", "wanted": 5, "has": 4, )"
                              R"("missing_pes": null, "index": 1, "count": 3, "queued": 3)"));
  EXPECT_THAT(text, HasSubstr(R"("program": [1, 0, 0])"));
  EXPECT_THAT(text, Not(HasSubstr(R"("program": [2, 0, 0])"))) << "has not begun";
  EXPECT_THAT(text, MatchesRegex(R"(.*"seconds": 0\.[0-9]{6}\}.*)"));
  EXPECT_EQ(waitsOf(0).size(), text.size()) << "the same table";
}

TEST_F(Describe, FollowsTheWait) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 4 * kSlotBytes);
  Launched launched(waitForThree, {1, 1, 1}, {signals});
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_THAT(waits(), HasSubstr(R"("pe_offset": 0, "compare": "==", "wanted": 5, "has": 0)"));
  std::atomic_ref(*pointer<std::int64_t>(signals)).store(7);
  EXPECT_THAT(waits(), HasSubstr(R"("has": 7)")) << "the value now";
  std::atomic_ref(*pointer<std::int64_t>(signals)).store(5);
  std::atomic_ref(*pointer<std::int64_t>(signals + kSlotBytes)).store(5);
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_THAT(waits(), AllOf(HasSubstr(R"("pe_offset": 128)"), HasSubstr(R"("index": 2)")));
  std::atomic_ref(*pointer<std::int64_t>(signals + 2 * kSlotBytes)).store(5);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(waits(), "[]");
}

TEST_F(Describe, TellsWhoWroteTheWordAndItsNeighbours) {
  const LoneJob job;
  const std::uint64_t other = allocate(0, 64);
  const std::uint64_t signals = allocate(0, 4 * kSlotBytes);
  const auto notify = [](const std::uint64_t *args, const std::int32_t * /*grid*/,
                         const std::int32_t *pid) {
    static constexpr tdist_loc kThere{"sender.py", 7, 1};
    tdist_sim_notify_i64(operand(args[0]) + std::int64_t{8} * pid[0], 0, 3 + pid[0], kNotifySet, 1,
                         &kThere);
    tdist_sim_notify_i64(operand(args[1]), 0, 9, kNotifySet, 1, &kThere);
  };
  Launched launched(waitForThree, {1, 1, 1}, {signals});
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_THAT(waits(), HasSubstr(R"("allocation": {"offset": 64, "bytes": 256}, )"
                                 R"("last_writer": null, "near": [], "seconds")"));
  launch(notify, {2, 1, 1}, {signals, other});
  ASSERT_EQ(tdist_rt_signal(pointer<void>(signals + 128), 8, 1, 1, 0), 0);
  const std::string text = waits();
  EXPECT_THAT(text, HasSubstr(R"("last_writer": {"rank": 0, "primitive": "notify", )"
                              R"("kernel": "test_kernel", "program": [0, 0, 0], )"
                              R"("file": "sender.py", "line": 7, "pe_offset": 64, "width": 8, )"
                              R"("add": false, "value": 3, "seconds": 0.)"));
  EXPECT_THAT(text, MatchesRegex(R"(.*"near": \[\{"rank": 0, "primitive": "host signal", )"
                                 R"("kernel": null, "program": null, "file": null, "line": 0, )"
                                 R"("pe_offset": 192, "width": 8, "add": true, "value": 1, )"
                                 R"("seconds": 0\.[0-9]*\}, \{"rank": 0, "primitive": "notify", )"
                                 R"("kernel": "test_kernel", "program": \[1, 0, 0\], .*)"
                                 R"("pe_offset": 72, .*"value": 4, "seconds": 0\.[0-9]*\}\], .*)"))
      << "the latest first, and nothing of the other allocation";
}

TEST_F(Describe, ForgetsWhoWroteWhatWasThereBefore) {
  const LoneJob job;
  const std::uint64_t before = allocate(0, kSlotBytes);
  ASSERT_EQ(tdist_rt_signal(pointer<void>(before), 8, 5, 0, 0), 0);
  ASSERT_EQ(tdist_rt_heap_free(0), 0);
  const std::uint64_t signals = allocate(0, 4 * kSlotBytes);
  ASSERT_EQ(signals, before);
  Launched launched(waitForThree, {1, 1, 1}, {signals});
  EXPECT_EQ(launched.run(5'000'000), 1);
  EXPECT_THAT(waits(), HasSubstr(R"("last_writer": null, "near": [])"));
}

TEST_F(Describe, ForgetsAbandonedLaunches) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 8 * kSlotBytes);
  {
    Launched launched(waitForThree, {5, 1, 1}, {signals});
    EXPECT_EQ(launched.run(5'000'000), 1);
    EXPECT_EQ(count(waits(), "test_kernel"), 5);
  }
  EXPECT_EQ(waits(), "[]");
}

TEST_F(Describe, EscapesNamesAndKeepsTheEndOfLongOnes) {
  const LoneJob job;
  static constexpr const char *kAwkward = "a \"b\"\\c\n\x01.py";
  static const std::string longName = "/begin" + std::string(400, 'x') + "/end.py";
  static constexpr tdist_loc kAwkwardPlace{kAwkward, 3, 1};
  static const tdist_loc longPlace{longName.c_str(), 4, 1};
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *pid) {
    tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, pid[0] == 0 ? &kAwkwardPlace : &longPlace);
  };
  Launched launched(kernel, {2, 1, 1}, {allocate(0, 64)}, kCores, "<lambda>\t");
  EXPECT_EQ(launched.run(5'000'000), 1);
  const std::string text = waits();
  EXPECT_THAT(text, HasSubstr(R"("file": "a \"b\"\\c\u000a\u0001.py")"));
  EXPECT_THAT(text, HasSubstr(R"("kernel": "<lambda>\u0009")"));
  EXPECT_THAT(text, HasSubstr("xxx/end.py\""));
  EXPECT_THAT(text, Not(HasSubstr("/begin")));
}

TEST_F(Describe, TellsWhoIsMissingInABarrier) {
  const Memories memories(3);
  ASSERT_EQ(tdist_rt_attach(1, 3, memories.fds(), kHeapBytes), 0);
  const std::uint64_t signal = allocate(1, 64);
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *pid) {
    if (pid[0] == 2) {
      tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere);
    }
    tdist_sim_barrier_all(0, &kHere);
  };
  Launched launched(kernel, {3, 1, 1}, {signal});
  EXPECT_EQ(launched.run(5'000'000), 1);
  std::string text = waits();
  EXPECT_EQ(count(text, R"("primitive": "barrier_all", "address": null, "pe_offset": null, )"
                        R"("compare": ">=", "wanted": 3, "has": 2, "missing_pes": null)"),
            2);
  std::atomic_ref(*pointer<std::int32_t>(signal)).store(1);
  EXPECT_EQ(launched.run(5'000'000), 1);
  text = waits();
  EXPECT_EQ(count(text, R"("compare": ">=", "wanted": 3, "has": 1, "missing_pes": [0, 2])"), 3);
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Describe, ListsHostWaitsFromAnotherThread) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(0, 2, memories.fds(), kHeapBytes), 0);
  const std::uint64_t word = allocate(0, 64);
  std::atomic<bool> stop = false;
  std::thread first([&] {
    while (!stop && tdist_rt_wait_until(pointer<void>(word), 4, kGt, 8, kSliceNs) == 1) {
    }
  });
  std::thread second([&] {
    const std::int64_t ticket = tdist_rt_barrier_arrive();
    while (!stop && tdist_rt_barrier_wait(ticket, kSliceNs) == 1) {
    }
  });
  bool sawWord = false;
  bool sawBarrier = false;
  while (!sawWord || !sawBarrier) {
    const std::string text = waits();
    sawWord = sawWord || text.find(R"("kernel": null, "program": null, "file": null, "line": 0, )"
                                   R"("primitive": "host wait_until")") != std::string::npos;
    sawWord =
        sawWord &&
        (text.find(R"("compare": ">", "wanted": 8, "has": 0)") != std::string::npos || sawBarrier);
    sawBarrier = sawBarrier || text.find(R"("has": 1, "missing_pes": [1])") != std::string::npos;
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(waits(), "[]");
  EXPECT_EQ(tdist_rt_detach(), 0);
}

TEST_F(Describe, SaysHowManyWaitsTheTableHasNoRoomFor) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 64);
  constexpr std::int32_t kSlots = 1024;
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *) {
    tdist_sim_wait_i32(operand(args[0]), 1, 1, 0, 1, &kHere);
  };
  Launched launched(kernel, {kSlots + 6, 1, 1}, {signals}, /*cores=*/kSlots + 6);
  int result = 1;
  while (result == 1 && count(waits(), "test_kernel") < kSlots) {
    result = launched.run(5'000'000);
  }
  const std::string text = waits();
  EXPECT_EQ(count(text, "test_kernel"), kSlots);
  EXPECT_THAT(text, HasSubstr(R"("primitive": "6 more waits")"));
  std::atomic_ref(*pointer<std::int32_t>(signals)).store(1);
  EXPECT_EQ(launched.finish(), 0);
  EXPECT_EQ(waits(), "[]");
}

TEST_F(Describe, OtherRanksCanReadTheTable) {
  runRanks(3, [](int rank) {
    const std::uint64_t signals = allocate(rank, 8 * kSlotBytes);
    hostBarrier();
    if (rank == 0) {
      Launched launched(waitForThree, {1, 1, 1}, {signals});
      EXPECT_EQ(launched.run(5'000'000), 1);
      hostBarrier(); // the wait stays listed between slices
      hostBarrier();
    } else {
      hostBarrier();
      const std::string text = waitsOf(0);
      EXPECT_EQ(count(text, "test_kernel"), 1);
      EXPECT_THAT(text, HasSubstr(R"("pe_offset": 0, "compare": "==", "wanted": 5, "has": 0)"));
      EXPECT_THAT(waitsOf(rank), Not(HasSubstr("test_kernel")));
      EXPECT_EQ(tdist_rt_peer_waits(3, nullptr, 0), -1);
      hostBarrier();
    }
  });
}

TEST_F(Describe, MayBeAskedWhileProgramsComeAndGo) {
  const LoneJob job;
  const std::uint64_t signals = allocate(0, 8 * kSlotBytes);
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      const std::string text = waits();
      // Each record whole: never a value of one wait with the program of another.
      for (int program = 0; program < 2; ++program) {
        const std::string mine = "[" + std::to_string(program) + ", 0, 0]";
        const std::size_t at = text.find(mine);
        if (at != std::string::npos) {
          const std::string record = text.substr(at, text.find('}', at) - at);
          EXPECT_THAT(record, HasSubstr("\"pe_offset\": " + std::to_string(64 * program) + ","));
        }
      }
    }
  });
  const auto kernel = [](const std::uint64_t *args, const std::int32_t *, const std::int32_t *pid) {
    tdist_sim_wait_i32(slot(args[0], pid[0]), 1, 1, 0, 1, &kHere);
  };
  for (int round = 0; round < 300; ++round) {
    Launched launched(kernel, {2, 1, 1}, {signals});
    EXPECT_EQ(launched.run(100'000), 1);
  }
  stop = true;
  reader.join();
}

} // namespace
} // namespace tdist::test
