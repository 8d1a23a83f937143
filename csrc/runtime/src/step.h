// Calls of the host API that a stream makes in its order: copies, signals, barriers and waits.
#pragma once

#include "tdist_sim.h"
#include "work.h"

#include <functional>
#include <utility>
#include <vector>

namespace tdist::sim {

class Step final : public Work {
public:
  using Ready = std::function<bool()>;
  using Action = std::function<void()>;

  /// `ready` says, with the engine locked, whether there is nothing left to wait for; `action` then
  /// does the rest, on any thread, and may throw Error. Either may be empty. `given`: the memory it
  /// works on. `wait`: how it is listed while it is not ready.
  Step(Ready ready, Action action, std::vector<MemoryRange> given = {},
       const tdist_wait_record &wait = {})
      : Work(Kind::Step), ready(std::move(ready)), action(std::move(action)),
        given(std::move(given)), wait(wait) {}

  [[nodiscard]] bool isReady() const { return !ready || ready(); }
  void run() const {
    if (action) {
      action();
    }
  }

  [[nodiscard]] bool isGiven(const MemoryRange &range) const override {
    for (const MemoryRange &own : given) {
      if (own.address < range.address + static_cast<std::uint64_t>(range.bytes) &&
          range.address < own.address + static_cast<std::uint64_t>(own.bytes)) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] const tdist_wait_record &waitRecord() const noexcept { return wait; }

private:
  const Ready ready;
  const Action action;
  const std::vector<MemoryRange> given;
  const tdist_wait_record wait;
};

} // namespace tdist::sim
