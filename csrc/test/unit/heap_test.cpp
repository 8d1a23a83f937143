// The symmetric heap of one PE.

#include "support/ranks.h"
#include "tdist_sim.h"

#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/sysinfo.h>

namespace tdist::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kPage = 4096;

std::int64_t reservedBytes(int fd) {
  constexpr std::int64_t kBlock = 512;
  struct stat status{};
  EXPECT_EQ(fstat(fd, &status), 0);
  return status.st_blocks * kBlock;
}

TEST(Heap, TakesTheFirstPlaceThatFits) {
  const LoneJob job;
  const std::int64_t first = tdist_rt_heap_alloc(1000, 64);
  const std::int64_t second = tdist_rt_heap_alloc(2000, 64);
  const std::int64_t third = tdist_rt_heap_alloc(3000, 64);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1024);
  EXPECT_EQ(third, 1024 + 2048);
  ASSERT_EQ(tdist_rt_heap_free(second), 0);
  EXPECT_EQ(tdist_rt_heap_alloc(2049, 64), third + 3008) << "does not fit into the gap";
  EXPECT_EQ(tdist_rt_heap_alloc(100, 64), second);
  EXPECT_EQ(tdist_rt_heap_alloc(100, 64), second + 128);
}

TEST(Heap, AlignsToWhatIsAskedFor) {
  const LoneJob job;
  EXPECT_EQ(tdist_rt_heap_alloc(1, 1), 0);
  EXPECT_EQ(tdist_rt_heap_alloc(1, 1), 64);
  EXPECT_EQ(tdist_rt_heap_alloc(1, 1 << 16), 1 << 16);
  EXPECT_EQ(tdist_rt_heap_alloc(1, 1), 128) << "the gap before an aligned block stays usable";
  EXPECT_EQ(tdist_rt_heap_alloc(1, 48), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("alignment 48"));
}

TEST(Heap, JoinsFreeNeighbours) {
  const LoneJob job;
  constexpr std::int64_t kThird = kHeapBytes / 4;
  std::int64_t blocks[4];
  for (std::int64_t &block : blocks) {
    block = tdist_rt_heap_alloc(kThird, 64);
    ASSERT_GE(block, 0);
  }
  // The one in the middle last: it has a free neighbour on either side.
  for (const int index : {0, 2, 1, 3}) {
    ASSERT_EQ(tdist_rt_heap_free(blocks[index]), 0);
  }
  EXPECT_EQ(tdist_rt_heap_used(), 0);
  EXPECT_EQ(tdist_rt_heap_alloc(kHeapBytes, 64), 0);
}

TEST(Heap, CountsWhatIsInUse) {
  const LoneJob job;
  EXPECT_EQ(tdist_rt_heap_used(), 0);
  const std::int64_t block = tdist_rt_heap_alloc(65, 64);
  EXPECT_EQ(tdist_rt_heap_used(), 128);
  ASSERT_EQ(tdist_rt_heap_free(block), 0);
  EXPECT_EQ(tdist_rt_heap_used(), 0);
}

TEST(Heap, SaysWhatIsFreeWhenItIsFull) {
  const LoneJob job;
  ASSERT_EQ(tdist_rt_heap_alloc(kHeapBytes - 4096, 64), 0);
  EXPECT_EQ(tdist_rt_heap_alloc(8192, 64), -1);
  const std::string text = tdist_rt_last_error();
  EXPECT_THAT(text, HasSubstr("no room for 8192 bytes"));
  EXPECT_THAT(text, HasSubstr("4096 of them free"));
  EXPECT_THAT(text, HasSubstr("local_mem_size"));
  EXPECT_EQ(tdist_rt_heap_alloc(4096, 64), kHeapBytes - 4096) << "the last bytes are usable";
}

TEST(Heap, RefusesSizesThatCannotBe) {
  const LoneJob job;
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{-1}, kHeapBytes + 1, INT64_MAX}) {
    EXPECT_EQ(tdist_rt_heap_alloc(bytes, 64), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr(std::to_string(bytes)));
  }
  EXPECT_EQ(tdist_rt_heap_used(), 0);
}

TEST(Heap, RefusesWhatTheMachineHasNoMemoryFor) {
  struct sysinfo machine{};
  ASSERT_EQ(sysinfo(&machine), 0);
  const auto memory = static_cast<std::int64_t>(machine.totalram * machine.mem_unit);
  const LoneJob job(2 * memory); // the memfd has holes only: it costs nothing
  EXPECT_EQ(tdist_rt_heap_alloc(memory, 64), -1);
  EXPECT_THAT(tdist_rt_last_error(),
              HasSubstr("no memory for " + std::to_string(memory) + " bytes"));
  EXPECT_EQ(tdist_rt_heap_used(), 0);
  EXPECT_EQ(tdist_rt_heap_alloc(4096, 64), 0) << "the refused allocation must leave no trace";
}

TEST(Heap, ReservesPagesAndGivesThemBack) {
  const LoneJob job;
  ASSERT_EQ(tdist_rt_heap_free(tdist_rt_heap_alloc(64, 64)), 0); // what the heap itself needs
  const std::int64_t before = reservedBytes(job.fd());
  const std::int64_t block = tdist_rt_heap_alloc(64 * kPage, kPage);
  ASSERT_EQ(block, 0);
  EXPECT_GE(reservedBytes(job.fd()) - before, 64 * kPage);
  ASSERT_EQ(tdist_rt_heap_free(block), 0);
  EXPECT_LT(reservedBytes(job.fd()) - before, kPage);
}

TEST(Heap, KeepsPagesThatNeighboursUse) {
  const LoneJob job;
  auto *base = static_cast<char *>(tdist_rt_heap_base(0));
  const std::int64_t left = tdist_rt_heap_alloc(kPage + 64, 64);
  const std::int64_t middle = tdist_rt_heap_alloc(kPage, 64);
  const std::int64_t right = tdist_rt_heap_alloc(64, 64);
  std::memset(base + left, 'l', kPage + 64);
  std::memset(base + right, 'r', 64);
  ASSERT_EQ(tdist_rt_heap_free(middle), 0);
  EXPECT_EQ(std::string(base + left, kPage + 64), std::string(kPage + 64, 'l'));
  EXPECT_EQ(std::string(base + right, 64), std::string(64, 'r'));
  const std::int64_t withBoth = reservedBytes(job.fd());
  ASSERT_EQ(tdist_rt_heap_free(left), 0);
  EXPECT_LE(reservedBytes(job.fd()), withBoth - kPage);
  EXPECT_EQ(std::string(base + right, 64), std::string(64, 'r'));
}

TEST(Heap, RefusesToFreeWhatIsNotLive) {
  const LoneJob job;
  const std::int64_t block = tdist_rt_heap_alloc(256, 64);
  EXPECT_EQ(tdist_rt_heap_free(block + 64), -1) << "the middle of a block";
  ASSERT_EQ(tdist_rt_heap_free(block), 0);
  EXPECT_EQ(tdist_rt_heap_free(block), -1) << "twice";
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("offset 0"));
}

TEST(Heap, GivesEqualOffsetsForEqualCalls) {
  const auto play = [] {
    const LoneJob job;
    std::string offsets;
    std::int64_t previous = -1;
    for (std::int64_t round = 1; round < 60; ++round) {
      const std::int64_t block = tdist_rt_heap_alloc(round * 977 % 5000 + 1, 64);
      offsets += std::to_string(block) + ' ';
      if (round % 3 == 0) {
        EXPECT_EQ(tdist_rt_heap_free(previous), 0);
      }
      previous = block;
    }
    return offsets;
  };
  EXPECT_EQ(play(), play());
}

} // namespace
} // namespace tdist::test
