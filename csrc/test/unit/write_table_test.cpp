// Records of who wrote signals: whole, the latest of each word, and never in the way of a signal.

#include "support/ranks.h"
#include "write_table.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace tdist::sim {
namespace {

class WriteTableTest : public testing::Test {
protected:
  using Slots = std::array<WriteSlot, WriteTable::kSlots>;

  const test::Deadline deadline;
  const std::unique_ptr<Slots> slots = std::make_unique<Slots>();
  WriteTable table{*slots};

  /// All zero if there is none.
  Write lastWrite(std::int64_t offset) { return table.last(offset, 0).value_or(Write{}); }
};

/// A write whose fields tell which one it is.
Write writeOf(std::int64_t offset, std::int32_t number) {
  return {.offset = offset,
          .value = -number,
          .at = number,
          .author = {.rank = number,
                     .place = static_cast<std::uint32_t>(number),
                     .program = {number, number, number},
                     .isHost = number % 2 == 0},
          .width = 8,
          .isAdd = number % 3 == 0};
}

void expectWhole(const Write &write, std::int64_t at = 0) {
  EXPECT_GT(write.at, 0);
  EXPECT_TRUE(at == 0 || write.at == at) << write.at;
  const auto number = static_cast<std::int32_t>(write.at);
  const Write expected = writeOf(write.offset, number);
  EXPECT_EQ(write.value, expected.value);
  EXPECT_EQ(write.author.rank, number);
  EXPECT_EQ(write.author.place, expected.author.place);
  EXPECT_EQ(write.author.program, expected.author.program);
  EXPECT_EQ(write.author.isHost, expected.author.isHost);
  EXPECT_EQ(write.isAdd, expected.isAdd);
  EXPECT_EQ(write.width, 8);
}

TEST_F(WriteTableTest, KeepsTheLatestOfEachWord) {
  for (std::int32_t number = 1; number <= 5; ++number) {
    table.record(writeOf(64, number));
    table.record(writeOf(72, number + 10));
  }
  table.record(writeOf(64, 2)); // one that was held up on its way
  expectWhole(lastWrite(64), 5);
  EXPECT_FALSE(table.last(65, 0).has_value());
  EXPECT_FALSE(table.last(64, 6).has_value()) << "before the word was there";
}

TEST_F(WriteTableTest, TellsTheWritesOfARange) {
  for (std::int32_t number = 1; number <= 4; ++number) {
    table.record(writeOf(std::int64_t{64} * number, number));
  }
  const std::vector<Write> found = table.inRange(128, 256, 0);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].offset, 192) << "the latest first";
  EXPECT_EQ(found[1].offset, 128);
  EXPECT_EQ(table.inRange(0, 1024, 4).size(), 1U);
}

TEST_F(WriteTableTest, OldRecordsMakeWay) {
  constexpr std::int32_t kMany = 3 * WriteTable::kSlots;
  for (std::int32_t number = 1; number <= kMany; ++number) {
    table.record(writeOf(std::int64_t{8} * number, number));
  }
  expectWhole(lastWrite(std::int64_t{8} * kMany), kMany);
  EXPECT_LE(table.inRange(0, std::int64_t{8} * kMany + 1, 0).size(), WriteTable::kSlots);
}

TEST_F(WriteTableTest, AWriterThatDiedInsideStopsNobody) {
  table.record(writeOf(64, 1));
  for (WriteSlot &slot : *slots) {
    slot.sequence += slot.sequence % 2 == 0 ? 1 : 0;
  }
  table.record(writeOf(64, 2));
  EXPECT_FALSE(table.last(64, 0).has_value());
}

TEST_F(WriteTableTest, WritersAndReadersSeeWholeRecords) {
  constexpr std::int32_t kWrites = 3000;
  std::atomic<int> writing = 2;
  std::vector<std::thread> writers;
  writers.reserve(2);
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::int32_t number = 1; number <= kWrites; ++number) {
        table.record(writeOf(64, 2 * number + writer));
      }
      --writing;
    });
  }
  while (writing != 0 && !HasFailure()) {
    if (const std::optional<Write> last = table.last(64, 0)) {
      expectWhole(*last);
    }
  }
  for (std::thread &writer : writers) {
    writer.join();
  }
  expectWhole(lastWrite(64));
}

} // namespace
} // namespace tdist::sim
