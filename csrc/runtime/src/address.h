// Addresses as compiled kernels hand them over: integers.
#pragma once

#include <cstdint>

namespace tdist::sim {

template <class T> T *pointerTo(std::uint64_t address) noexcept {
  return reinterpret_cast<T *>(address); // NOLINT(performance-no-int-to-ptr): the ABI's form
}

inline std::uint64_t addressOf(const void *pointer) noexcept {
  return reinterpret_cast<std::uint64_t>(pointer);
}

} // namespace tdist::sim
