// Records of waits: whole whenever they are read, and never lost.

#include "support/ranks.h"
#include "wait_table.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <thread>

namespace tdist::sim {
namespace {

class WaitTableTest : public testing::Test {
  const test::Deadline deadline;
};

/// A record whose fields tell which write they come from.
tdist_wait_record recordOf(std::int32_t number) {
  tdist_wait_record record{};
  record.kind = TDIST_WAIT_WORD;
  record.line = number;
  record.wanted = number;
  record.epoch = static_cast<std::uint64_t>(number);
  copyText(record.kernel, std::to_string(number));
  copyText(record.file, "/long/path/" + std::string(200, 'x') + std::to_string(number));
  return record;
}

TEST_F(WaitTableTest, RecordsAreReadWhole) {
  WaitSlot slot{};
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::int32_t number = 1; !stop; number = number % 1'000'000 + 1) {
      slot.write(recordOf(number));
    }
  });
  // So many reads as a second has room for: sanitizers make them slow.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int found = 0;
  while ((found == 0 || std::chrono::steady_clock::now() < end) && !HasFailure()) {
    const tdist_wait_record record = slot.read();
    if (record.kind == TDIST_WAIT_NONE) {
      continue; // before the first write, or the writer was never outside
    }
    ++found;
    const tdist_wait_record expected = recordOf(record.line);
    EXPECT_EQ(record.wanted, expected.wanted);
    EXPECT_EQ(record.epoch, expected.epoch);
    EXPECT_STREQ(record.kernel, expected.kernel);
    EXPECT_STREQ(record.file, expected.file);
  }
  stop = true;
  writer.join();
}

TEST_F(WaitTableTest, AWriterThatDiedInsideIsNotWaitedFor) {
  WaitSlot slot{};
  slot.write(recordOf(1));
  slot.sequence += 1;
  EXPECT_EQ(slot.read().kind, TDIST_WAIT_NONE);
}

TEST_F(WaitTableTest, SlotsAreUsedAgainAndOverflowIsCounted) {
  std::array<WaitSlot, 2> slots{};
  std::uint64_t unlisted = 0;
  WaitTable table(slots, unlisted);
  WaitSlot *first = table.acquire();
  WaitSlot *second = table.acquire();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.acquire(), nullptr);
  EXPECT_EQ(table.acquire(), nullptr);
  EXPECT_EQ(unlisted, 2U);
  table.release(nullptr);
  EXPECT_EQ(unlisted, 1U);
  first->write(recordOf(5));
  table.release(first);
  EXPECT_EQ(first->read().kind, TDIST_WAIT_NONE);
  EXPECT_EQ(table.acquire(), first);
}

TEST_F(WaitTableTest, LongTextsKeepTheirEnd) {
  std::array<char, 6> field{};
  copyText(field, "abc");
  EXPECT_STREQ(field.data(), "abc");
  copyText(field, "abcdefgh");
  EXPECT_STREQ(field.data(), "defgh");
  copyText(field, "");
  EXPECT_STREQ(field.data(), "");
}

} // namespace
} // namespace tdist::sim
