// Joining and leaving a job.

#include "support/ranks.h"
#include "tdist_sim.h"

#include <array>
#include <cstdint>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tdist::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Attach, HasTheInterfaceVersionOfItsHeader) { EXPECT_EQ(tdist_rt_abi_version(), 3); }

TEST(Attach, SegmentsDivideByAnyElementSize) {
  constexpr std::int64_t kGranule = std::int64_t{2} << 20;
  for (const std::int64_t heap :
       {std::int64_t{1}, std::int64_t{1000}, kHeapBytes, kHeapBytes + 1}) {
    const std::int64_t bytes = tdist_rt_segment_bytes(heap);
    EXPECT_EQ(bytes % kGranule, 0);
    EXPECT_GT(bytes, heap);
  }
  EXPECT_EQ(tdist_rt_segment_bytes(0), -1);
  EXPECT_EQ(tdist_rt_segment_bytes(-5), -1);
  EXPECT_EQ(tdist_rt_segment_bytes(INT64_MAX), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("9223372036854775807 bytes"));
}

TEST(Attach, MapsHeapsAtEqualDistances) {
  const Memories memories(3);
  ASSERT_EQ(tdist_rt_attach(1, 3, memories.fds(), kHeapBytes), 0) << tdist_rt_last_error();
  auto *const first = static_cast<std::byte *>(tdist_rt_heap_base(0));
  const std::int64_t stride = tdist_rt_segment_bytes(kHeapBytes);
  EXPECT_EQ(tdist_rt_heap_base(1), first + stride);
  EXPECT_EQ(tdist_rt_heap_base(2), first + 2 * stride);
  EXPECT_EQ(tdist_rt_heap_base(3), nullptr);
  EXPECT_EQ(tdist_rt_heap_base(-1), nullptr);
  // What is written through one PE's view is in that PE's memfd.
  first[stride + 5] = std::byte{77};
  std::byte seen{};
  const std::int64_t heapBegin = stride - kHeapBytes;
  ASSERT_EQ(pread(memories.fds()[1], &seen, 1, heapBegin + 5), 1);
  EXPECT_EQ(seen, std::byte{77});
  EXPECT_EQ(tdist_rt_detach(), 0);
  EXPECT_EQ(tdist_rt_heap_base(0), nullptr);
}

TEST(Attach, RefusesABadDescriptor) {
  const Memories memories(2);
  const int closed = fcntl(memories.fds()[0], F_DUPFD, 0);
  ASSERT_GE(closed, 0);
  close(closed);
  for (const int bad : {-1, closed}) {
    const std::array<std::int32_t, 2> fds{memories.fds()[0], bad};
    EXPECT_EQ(tdist_rt_attach(0, 2, fds.data(), kHeapBytes), -1);
    EXPECT_THAT(tdist_rt_last_error(), AllOf(HasSubstr("PE 1"), HasSubstr("Bad file descriptor")));
  }
}

TEST(Attach, RefusesAMemoryThatIsTooSmall) {
  const Memories memories(2);
  EXPECT_EQ(tdist_rt_attach(0, 2, memories.fds(), 4 * kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(),
              AllOf(HasSubstr("PE 0"),
                    HasSubstr(std::to_string(tdist_rt_segment_bytes(kHeapBytes))),
                    HasSubstr(std::to_string(tdist_rt_segment_bytes(4 * kHeapBytes)))));
}

TEST(Attach, RefusesADescriptorThatCannotBeWritten) {
  const Memories memories(1);
  const std::string path = "/proc/self/fd/" + std::to_string(memories.fds()[0]);
  const std::int32_t readOnly = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(readOnly, 0);
  EXPECT_EQ(tdist_rt_attach(0, 1, &readOnly, kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("cannot be mapped"));
  close(readOnly);
}

TEST(Attach, RefusesARankOutsideTheJob) {
  const Memories memories(2);
  for (const std::int32_t rank : {-1, 2}) {
    EXPECT_EQ(tdist_rt_attach(rank, 2, memories.fds(), kHeapBytes), -1);
    EXPECT_THAT(tdist_rt_last_error(), HasSubstr("rank " + std::to_string(rank)));
  }
  EXPECT_EQ(tdist_rt_attach(0, 0, memories.fds(), kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("0 PEs"));
}

TEST(Attach, RefusesASecondJob) {
  const LoneJob job;
  const Memories memories(1);
  EXPECT_EQ(tdist_rt_attach(0, 1, memories.fds(), kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("attached already"));
}

TEST(Attach, RefusesAMemoryThatHasServedAJob) {
  const Memories memories(1);
  ASSERT_EQ(tdist_rt_attach(0, 1, memories.fds(), kHeapBytes), 0);
  ASSERT_EQ(tdist_rt_detach(), 0);
  EXPECT_EQ(tdist_rt_attach(0, 1, memories.fds(), kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("served a job before"));
}

TEST(Attach, RefusesMemoriesInTheWrongOrder) {
  const Memories memories(2);
  ASSERT_EQ(tdist_rt_attach(1, 2, memories.fds(), kHeapBytes), 0);
  ASSERT_EQ(tdist_rt_detach(), 0);
  const std::array<std::int32_t, 2> swapped{memories.fds()[1], memories.fds()[0]};
  EXPECT_EQ(tdist_rt_attach(1, 2, swapped.data(), kHeapBytes), -1);
  EXPECT_THAT(tdist_rt_last_error(), AllOf(HasSubstr("given for PE 0"), HasSubstr("that of PE 1")));
}

TEST(Attach, CanBeDoneAgainAfterDetaching) {
  for (int round = 0; round < 3; ++round) {
    const LoneJob job;
    EXPECT_EQ(tdist_rt_heap_alloc(128, 64), 0) << "a new heap is empty";
  }
}

TEST(Attach, HostFunctionsSayThatNothingIsAttached) {
  EXPECT_EQ(tdist_rt_detach(), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("not attached"));
  EXPECT_EQ(tdist_rt_heap_alloc(64, 64), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("aclshmem is not initialised"));
  EXPECT_EQ(tdist_rt_heap_free(0), -1);
  EXPECT_EQ(tdist_rt_barrier_arrive(), -1);
  EXPECT_EQ(tdist_rt_barrier_wait(1, 0), -1);
  EXPECT_EQ(tdist_rt_quiet(), -1);
  EXPECT_EQ(tdist_rt_fence(), -1);
  std::int32_t word = 0;
  EXPECT_EQ(tdist_rt_put(&word, &word, 4, 0), -1);
  EXPECT_EQ(tdist_rt_get(&word, &word, 4, 0), -1);
  EXPECT_EQ(tdist_rt_signal(&word, 4, 1, 0, 0), -1);
  EXPECT_EQ(tdist_rt_wait_until(&word, 4, 0, 0, 0), -1);
  EXPECT_THAT(tdist_rt_last_error(), HasSubstr("wait_until: aclshmem is not initialised"));
  EXPECT_EQ(tdist_rt_heap_used(), 0);
}

} // namespace
} // namespace tdist::test
