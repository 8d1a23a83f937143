// Cores of the simulated SoC: an AI core is a cube core (AIC) with vector cores (AIV).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tdist::sim {

struct Cores {
  std::int32_t aic = 0;
  std::int32_t aiv = 0;

  [[nodiscard]] bool hasRoomFor(const Cores &needed) const noexcept {
    return needed.aic <= aic && needed.aiv <= aiv;
  }
  /// How many times `needed` fits at once.
  [[nodiscard]] std::int32_t countOf(const Cores &needed) const noexcept {
    constexpr std::int32_t kAny = std::numeric_limits<std::int32_t>::max();
    return std::min(needed.aic > 0 ? aic / needed.aic : kAny,
                    needed.aiv > 0 ? aiv / needed.aiv : kAny);
  }
  Cores &operator+=(const Cores &other) noexcept {
    aic += other.aic;
    aiv += other.aiv;
    return *this;
  }
  Cores &operator-=(const Cores &other) noexcept {
    aic -= other.aic;
    aiv -= other.aiv;
    return *this;
  }
};

} // namespace tdist::sim
