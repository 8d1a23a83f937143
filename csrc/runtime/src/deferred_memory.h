// What a program has stored and others do not see yet: the strict mode's model of memory.
#pragma once

#include "job.h"
#include "strict.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tdist::sim {

/// Symmetric memory as one program of a launch, or the host, uses it.
///
/// Plain stores are kept here, line by line, and read by the program's own loads. They become
/// visible in any order at the next release: a signal, quiet, fence, a barrier, an atomic
/// operation, the end of the program. Copies with `nbi` are done at quiet, fence, a barrier or the
/// end; those with a signal may be done earlier, by progress().
///
/// Used by one thread at a time, which whoever hands it over sees to.
class DeferredMemory {
public:
  struct Signal {
    std::uint64_t address;
    std::int32_t value;
    SignalOp op;
    Author author;
  };

  /// `job` must live as long as the object.
  DeferredMemory(Job &job, Dice dice) : job(job), dice(dice) {}

  /// A plain store or load of the program. Throws Error for symmetric memory that is in no live
  /// allocation; memory that is not symmetric is written and read at once.
  void store(std::uint64_t address, const void *source, std::int64_t bytes);
  void load(std::uint64_t address, void *target, std::int64_t bytes);

  void put(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
           std::int32_t pe);
  void get(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
           std::int32_t pe);
  /// `what` must stay valid. Operands that are wrong fail at once.
  void putLater(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                std::int32_t pe, std::optional<Signal> signal = {});
  void getLater(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                std::int32_t pe);

  /// How many lines of stores others do not see yet; one of them, by dice, becomes visible.
  [[nodiscard]] std::size_t kept() const noexcept { return order.size(); }
  void releaseAny();
  /// Whether, where a line has last become visible, a program sleeps although the word that it
  /// waits for is there: it has not had a core yet.
  [[nodiscard]] bool isSomeoneWaking() const;
  /// All stores so far become visible.
  void release();
  /// All stores and copies so far become visible. Throws Error for a copy that cannot be done any
  /// more, since its memory was freed meanwhile.
  void complete();
  /// Lets one thing become visible that hardware would get round to by itself: a line of stores, or
  /// a copy with a signal. False: there is none.
  bool progress();
  /// Whether there is something of that kind.
  [[nodiscard]] bool mayProgress() const noexcept;

private:
  static constexpr std::uint64_t kLineBytes = 64;
  static constexpr std::size_t kMostLines = 1 << 16; // stores beyond that drive others out

  struct Line {
    std::array<std::byte, kLineBytes> bytes;
    std::uint64_t written; // one bit a byte
  };
  struct Copy {
    const char *what;
    std::uint64_t dst;
    std::uint64_t src;
    std::int64_t bytes;
    std::int32_t pe;
    bool isPut;
    std::optional<std::vector<std::byte>> early; // a put's data, where the dice had it read at once
    std::optional<Signal> signal;
    bool isStuck = false;
  };
  /// The live allocation that was used last, to look no further next time.
  struct Recent {
    AllocationSlot *slot = nullptr;
    std::int32_t pe = -1;
  };

  void check(const char *what, std::uint64_t address, std::int64_t bytes);
  void write(std::uint64_t address, const Line &line);
  void releaseRange(std::uint64_t address, std::int64_t bytes);
  void deliver(const Copy &copy);

  Job &job;
  Dice dice;
  std::unordered_map<std::uint64_t, Line> lines; // by address
  std::vector<std::uint64_t> order;              // of lines, unsorted
  std::vector<Copy> copies;
  Recent recent;
  std::int32_t lastOwner = 0; // of the line that has become visible last
};

} // namespace tdist::sim
