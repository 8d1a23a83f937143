// The strict mode: what the rules of the shmem library allow to happen, happens, by dice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tdist::sim {

/// Random numbers that are the same for the same seed on every machine (splitmix64).
class Dice {
public:
  explicit Dice(std::uint64_t seed) noexcept : state(seed) {}

  std::uint64_t next() noexcept {
    state += 0x9e37'79b9'7f4a'7c15;
    std::uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11eb;
    return mixed ^ mixed >> 31;
  }
  /// From 0 to `count` - 1; `count` is at least 1.
  std::size_t below(std::size_t count) noexcept { return next() % count; }
  /// True once in `count` times.
  bool oneIn(std::size_t count) noexcept { return below(count) == 0; }
  /// Dice of its own for the part `key` of what these decide.
  [[nodiscard]] Dice fork(std::uint64_t key) const noexcept {
    Dice mixed(state ^ (key + 1) * 0xd6e8'feb8'6659'fd93);
    return Dice(mixed.next());
  }

private:
  std::uint64_t state;
};

/// Whether this process is strict; chosen by host code before it attaches to a job. Relaxed: host
/// code sets it before it gives anything to the threads that ask.
class Strict {
public:
  static bool isOn() noexcept { return on.load(std::memory_order_relaxed); }
  static std::uint64_t seed() noexcept { return chosenSeed.load(std::memory_order_relaxed); }
  static void choose(bool isOn, std::uint64_t seed) noexcept {
    on.store(isOn, std::memory_order_relaxed);
    chosenSeed.store(seed, std::memory_order_relaxed);
  }

private:
  static inline std::atomic<bool> on = false;
  static inline std::atomic<std::uint64_t> chosenSeed = 0;
};

/// What fresh symmetric memory holds: a NaN of float16, bfloat16, float32 and float64, and integers
/// that nobody expects (0x7ffd, 0x7ffd7ffd, ...).
void poison(std::byte *memory, std::int64_t bytes) noexcept;

} // namespace tdist::sim
