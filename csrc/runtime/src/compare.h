// Words that are waited for, and the comparisons of the shmem library.
#pragma once

#include "address.h"

#include <atomic>
#include <cstdint>

namespace tdist::sim {

enum class Compare : std::int32_t { Eq = 0, Ne = 1, Gt = 2, Ge = 3, Lt = 4, Le = 5 };
inline constexpr std::int32_t kCompares = 6;

inline bool holds(Compare compare, std::int64_t has, std::int64_t wanted) noexcept {
  switch (compare) {
  case Compare::Eq:
    return has == wanted;
  case Compare::Ne:
    return has != wanted;
  case Compare::Gt:
    return has > wanted;
  case Compare::Ge:
    return has >= wanted;
  case Compare::Lt:
    return has < wanted;
  case Compare::Le:
    return has <= wanted;
  }
  return false;
}

inline const char *symbolOf(Compare compare) noexcept {
  constexpr const char *kSymbols[kCompares] = {"==", "!=", ">", ">=", "<", "<="};
  return kSymbols[static_cast<std::int32_t>(compare)];
}

/// The signed word of `width` (1, 2, 4, 8) bytes at an address that is a multiple of it.
/// Seq_cst: an acquire, so that the data a signal stands for is visible once the signal is; and in
/// the total order in which Doorbell wants the looks that precede a sleep.
inline std::int64_t loadWord(std::uint64_t address, std::int32_t width) noexcept {
  const auto load = [address]<class Word>(Word /*zero*/) -> std::int64_t {
    return std::atomic_ref(*pointerTo<Word>(address)).load(std::memory_order_seq_cst);
  };
  switch (width) {
  case 1:
    return load(std::int8_t{});
  case 2:
    return load(std::int16_t{});
  case 4:
    return load(std::int32_t{});
  default:
    return load(std::int64_t{});
  }
}

} // namespace tdist::sim
