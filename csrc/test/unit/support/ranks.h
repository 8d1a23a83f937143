// Jobs for tests: in this process, and of forked rank processes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tdist::test {

inline constexpr std::int64_t kHeapBytes = std::int64_t{4} << 20;
inline constexpr unsigned kDeadlineSeconds = 60;

/// memfds as the PEs of a job bring them.
class Memories {
public:
  explicit Memories(int count, std::int64_t heapBytes = kHeapBytes);
  Memories(const Memories &) = delete;
  Memories &operator=(const Memories &) = delete;
  ~Memories();

  [[nodiscard]] const std::int32_t *fds() const { return descriptors.data(); }
  [[nodiscard]] int count() const { return static_cast<int>(descriptors.size()); }

private:
  std::vector<std::int32_t> descriptors;
};

/// This process as the only PE of a job, as long as the object lives.
class LoneJob {
public:
  explicit LoneJob(std::int64_t heapBytes = kHeapBytes);
  LoneJob(const LoneJob &) = delete;
  LoneJob &operator=(const LoneJob &) = delete;
  ~LoneJob();

  [[nodiscard]] int fd() const { return memories.fds()[0]; }

private:
  Memories memories;
};

/// Forks a process for each of `count` ranks, which attaches, runs `body(rank)` and detaches. Adds
/// a failure to the running test for each rank that fails, dies or is not done after
/// kDeadlineSeconds.
void runRanks(int count, const std::function<void(int)> &body);

/// Waits at the host barrier of all ranks.
void hostBarrier();

/// Ends this process by SIGALRM unless the object is destroyed in time.
class Deadline {
public:
  explicit Deadline(unsigned seconds = kDeadlineSeconds);
  Deadline(const Deadline &) = delete;
  Deadline &operator=(const Deadline &) = delete;
  ~Deadline();
};

} // namespace tdist::test
