// One launch of a kernel: its programs, in flight and queued.
#pragma once

#include "cores.h"
#include "job.h"
#include "lane.h"
#include "tdist_sim.h"
#include "traced_program.h"
#include "work.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tdist::sim {

/// All members but call() are used with the engine locked.
class Launch final : public Work {
public:
  /// Throws Error for a grid that cannot be, or a program that needs more cores than there are.
  Launch(std::shared_ptr<Job> job, const tdist_launch &description, const Cores &all);

  [[nodiscard]] bool isGiven(const MemoryRange &range) const override;

  [[nodiscard]] Job *job() const noexcept { return ownJob.get(); }
  [[nodiscard]] const std::string &kernelName() const noexcept { return name; }
  /// Which launch of this process it is.
  [[nodiscard]] std::uint64_t serial() const noexcept { return ownSerial; }
  [[nodiscard]] std::int64_t queued() const noexcept { return programs - started; }
  [[nodiscard]] bool hasEnded() const noexcept { return ended == programs; }
  /// What one program takes.
  [[nodiscard]] const Cores &coresOfProgram() const noexcept { return cores; }
  /// What the launch's programs write into the trace, if there is one.
  [[nodiscard]] const TracedProgram::Launch &traced() const noexcept { return trace; }
  /// "; launched at FILE:LINE", or "".
  [[nodiscard]] std::string place() const;

  // By the engine.
  /// A lane with the next program; there must be one that is queued.
  Lane &startNext();
  /// The lane's program has ended.
  void noteEnd(Lane &lane);
  /// All programs have ended: where the other PEs can read it.
  void tellEnd() const noexcept;
  void arriveAtBarrier(Lane &lane);
  void passBarrierIfComplete() noexcept;
  /// Why the launch has failed; "" as long as it has not.
  [[nodiscard]] const std::string &failure() const noexcept { return why; }
  void fail(const Lane &lane, const std::string &reason);

  // By its lanes.
  /// How often all its programs have passed a barrier.
  [[nodiscard]] std::uint64_t barrierPassages() const noexcept { return passages; }
  /// The argument that leads to a word of symmetric memory: into the same allocation, and closest
  /// before it.
  void describeObject(tdist_wait_record &record) const;
  void describeBarrier(tdist_wait_record &record) const noexcept;
  void call(const Lane::Program &program) const;

private:
  [[nodiscard]] std::string whyNoBarrier(const Lane &lane) const;

  const std::shared_ptr<Job> ownJob;
  const std::uint64_t ownSerial;
  const tdist_kernel_fn function;
  const std::string name;
  const char *const file; // of the launch, in host code
  const std::int32_t line;
  const std::array<std::int32_t, 3> grid;
  const Cores cores;
  const TracedProgram::Launch trace;
  const std::vector<std::uint64_t> arguments;
  const char *const argumentNames; // separated by commas; or nullptr
  const std::int64_t programs;     // in the grid
  const std::int64_t mostInFlight;
  std::int64_t started = 0;
  std::int64_t ended = 0;
  Lane::Program endedFirst{};
  std::string why;

  // Barrier: the programs of this launch gather, then this PE arrives among the PEs.
  std::uint64_t passages = 0;
  std::int64_t gathered = 0;
  bool isCrossing = false; // all have gathered, other PEs are missing
  std::uint64_t crossing = 0;

  std::vector<std::unique_ptr<Lane>> lanes; // busy and idle ones
  std::vector<Lane *> idleLanes;
};

} // namespace tdist::sim
