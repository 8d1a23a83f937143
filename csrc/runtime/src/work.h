// What a stream holds: things that are done one after the other.
#pragma once

#include "job.h"

#include <cstdint>
#include <memory>

namespace tdist::sim {

/// Bytes of memory, as host code names them.
struct MemoryRange {
  std::uint64_t address;
  std::int64_t bytes;
};

/// A place in a stream: reached when the stream has done `number` things.
struct StreamPosition {
  std::int64_t stream = 0;
  std::int64_t number = 0;
};

/// One thing in a stream. All members are called with the engine locked.
class Work {
public:
  enum class Kind {
    Launch,
    Step, // a call of the host API, in stream order
    Wait, // for a position of another stream
    Mark  // notes the time
  };

  explicit Work(Kind kind) noexcept : workKind(kind) {}
  Work(const Work &) = delete;
  Work &operator=(const Work &) = delete;
  virtual ~Work() = default;

  [[nodiscard]] Kind kind() const noexcept { return workKind; }
  /// Whether it was given memory of `range`; symmetric memory is the same on every PE.
  [[nodiscard]] virtual bool isGiven(const MemoryRange & /*range*/) const { return false; }

private:
  const Kind workKind;
};

/// The moment at which a stream has come to it.
class Mark final : public Work {
public:
  Mark() noexcept : Work(Kind::Mark) {}

  StreamPosition position;
  std::int64_t reachedAt = 0; // CLOCK_MONOTONIC, nanoseconds; 0: not yet
};

/// Holds its stream until another one has come to a position.
class PositionWait final : public Work {
public:
  explicit PositionWait(StreamPosition position) noexcept : Work(Kind::Wait), position(position) {}

  const StreamPosition position;
};

} // namespace tdist::sim
