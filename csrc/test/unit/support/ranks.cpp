#include "ranks.h"

#include "tdist_sim.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define TDIST_TEST_LEAKS 1
#endif
#endif

namespace tdist::test {
namespace {

bool hasLeaks() {
#if defined(TDIST_TEST_LEAKS)
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

[[noreturn]] void runRank(const Memories &memories, int rank,
                          const std::function<void(int)> &body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kDeadlineSeconds);
  EXPECT_EQ(tdist_rt_attach(rank, memories.count(), memories.fds(), kHeapBytes), 0)
      << tdist_rt_last_error();
  if (!testing::Test::HasFailure()) {
    body(rank);
    EXPECT_EQ(tdist_rt_detach(), 0) << tdist_rt_last_error();
  }
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() || hasLeaks() ? EXIT_FAILURE : EXIT_SUCCESS);
}

} // namespace

Memories::Memories(int count, std::int64_t heapBytes) {
  for (int pe = 0; pe < count; ++pe) {
    const int fd = memfd_create("tdist-test", MFD_CLOEXEC);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(ftruncate(fd, tdist_rt_segment_bytes(heapBytes)), 0);
    descriptors.push_back(fd);
  }
}

Memories::~Memories() {
  for (const std::int32_t fd : descriptors) {
    close(fd);
  }
}

LoneJob::LoneJob(std::int64_t heapBytes) : memories(1, heapBytes) {
  EXPECT_EQ(tdist_rt_attach(0, 1, memories.fds(), heapBytes), 0) << tdist_rt_last_error();
}

LoneJob::~LoneJob() { EXPECT_EQ(tdist_rt_detach(), 0) << tdist_rt_last_error(); }

void runRanks(int count, const std::function<void(int)> &body) {
  const Memories memories(count);
  std::fflush(nullptr);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      runRank(memories, rank, body);
    }
    ASSERT_GT(child, 0);
    ranks.push_back(child);
  }
  for (int left = count; left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    int rank = 0;
    while (ranks[static_cast<std::size_t>(rank)] != ended) {
      ++rank;
    }
    ranks[static_cast<std::size_t>(rank)] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
      continue;
    }
    if (WIFSIGNALED(status)) {
      ADD_FAILURE() << "rank " << rank << " was ended by " << sigdescr_np(WTERMSIG(status));
    } else {
      ADD_FAILURE() << "rank " << rank << " failed, see above";
    }
    for (const pid_t other : ranks) { // they may wait for the one that is gone
      if (other != 0) {
        kill(other, SIGKILL);
      }
    }
  }
}

void hostBarrier() {
  const std::int64_t ticket = tdist_rt_barrier_arrive();
  ASSERT_GE(ticket, 1) << tdist_rt_last_error();
  int result = 1;
  while (result == 1) {
    constexpr std::int64_t kSliceNs = 20'000'000;
    result = tdist_rt_barrier_wait(ticket, kSliceNs);
  }
  ASSERT_EQ(result, 0) << tdist_rt_last_error();
}

Deadline::Deadline(unsigned seconds) { alarm(seconds); }

Deadline::~Deadline() { alarm(0); }

} // namespace tdist::test
