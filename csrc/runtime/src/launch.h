// One launch of a kernel: its programs, in flight and queued.
#pragma once

#include "idle.h"
#include "job.h"
#include "lane.h"
#include "tdist_sim.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tdist::sim {

class Launch {
public:
  using Grid = std::array<std::int32_t, 3>;

  /// Throws Error for a grid or a number of cores that cannot be. `job` may be empty.
  Launch(std::shared_ptr<Job> job, tdist_kernel_fn function, std::string kernelName,
         const Grid &grid, std::int32_t cores, std::span<const std::uint64_t> arguments);

  /// Runs programs until all have ended (true) or the deadline is past (false). Throws Error once a
  /// program has failed, again in every later call.
  bool run(Clock::time_point deadline);

  // By its lanes.
  [[nodiscard]] Job *job() const noexcept { return ownJob.get(); }
  [[nodiscard]] const std::string &kernelName() const noexcept { return name; }
  [[nodiscard]] std::int64_t queued() const noexcept { return programs - started; }
  /// How often all its programs have passed a barrier.
  [[nodiscard]] std::uint64_t barrierPassages() const noexcept { return passages; }
  void call(const Lane::Program &program) const;
  /// Throws Error where the barrier can never be passed.
  void arriveAtBarrier(const Lane &lane);
  void describeBarrier(tdist_wait_record &record) const noexcept;
  void fail(const Lane &lane, std::string why) noexcept;

private:
  enum class Progress { None, Some, SliceOver };

  Progress runLanes(Clock::time_point deadline);
  Progress serve(Lane &lane, Clock::time_point deadline);
  bool assignNext(Lane &lane) noexcept;
  void noteEnd(const Lane &lane);
  void passBarrierIfComplete() noexcept;
  [[nodiscard]] bool hasEnded() const noexcept { return ended == programs; }
  [[nodiscard]] bool canAnyRun();
  void listWaits();

  const std::shared_ptr<Job> ownJob;
  const tdist_kernel_fn function;
  const std::string name;
  const Grid grid;
  const std::int64_t cores;
  const std::vector<std::uint64_t> arguments;
  std::int64_t programs; // in the grid
  std::int64_t started = 0;
  std::int64_t ended = 0;
  Lane::Program endedFirst{};
  std::string failure;
  bool hasFailed = false;
  std::atomic_flag isRunning;

  // Barrier: the programs of this launch gather, then this PE arrives among the PEs.
  std::uint64_t passages = 0;
  std::int64_t gathered = 0;
  bool isCrossing = false; // all have gathered, other PEs are missing
  std::uint64_t crossing = 0;

  std::vector<std::unique_ptr<Lane>> lanes; // at most `cores`
  std::size_t cursor = 0;                   // the lane whose turn it is
};

} // namespace tdist::sim
