// Whether no rank of the job can go on: a result, not a time-out.
#pragma once

#include "control_area.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tdist::sim {

class Job;

/// Finds that nothing in the job can change any more, and keeps what is then said to all ranks.
///
/// A PE is quiet when its engine says so (ControlArea::engine is even) and its host is in a wait
/// that its own launches or other ranks must end (ControlArea::host), or has exited. While it is
/// quiet it writes nothing that anybody waits for. It leaves the quiet by a change of one of the
/// two words, which only ever grow, before it does anything else.
///
/// find() reads both words of all PEs (A), later reads everything that is waited for (B), and then
/// both words again (C). All are seq_cst, so A, B and C lie in one order with the changes of the
/// words. If C shows what A did, no PE left the quiet between them; so what B read was stored
/// before A and is what it will stay as long as all are quiet. If none of it ends a wait, all
/// remain quiet for ever.
///
/// What programs wait for stands in the tables of waits: an engine lists all of them before it
/// calls itself quiet. What a host waits for is not listed; its own thread looks at it, again and
/// again, and counts (ControlArea::looks) each time that it was not there. A look that begins after
/// A is one that B needs; since one may have begun before A and be counted behind it, two must be.
/// Waits that have found no room in the table are part of that look (Engine::isQuiet).
class DeadlockWatch {
public:
  enum class Rank : std::uint8_t {
    Here = 0,
    Exited = 1 // its host will do nothing any more; its programs may
  };

  explicit DeadlockWatch(Job &job) noexcept : job(job) {}

  /// This rank's host has found that what it waits for is not there.
  void countLook() noexcept;
  /// Whether nobody can go on. `ranks` has a value for each rank. True only once some looks of all
  /// ranks that wait have been counted: to be called now and then.
  bool find(std::span<const Rank> ranks);

  /// Makes `text` the verdict of the job, unless another rank was first.
  void judge(std::string_view text) noexcept;
  /// What all ranks are told; "" as long as there is no verdict.
  [[nodiscard]] std::string verdict() const;

private:
  struct Words {
    std::uint64_t engine;
    std::uint64_t host;
    std::uint64_t looks;
  };
  using Snapshot = std::vector<Words>;

  [[nodiscard]] std::optional<Snapshot> takeIfQuiet(std::span<const Rank> ranks) const;
  [[nodiscard]] bool isAnyWaitOver(std::span<const Rank> ranks) const;

  Job &job;
  std::mutex mutex;
  std::optional<Snapshot> first;
};

} // namespace tdist::sim
