#include "strict.h"

#include <cstring>

namespace tdist::sim {

void poison(std::byte *memory, std::int64_t bytes) noexcept {
  constexpr std::uint16_t kPattern = 0x7ffd;
  std::int64_t at = 0;
  for (; at + std::int64_t{sizeof kPattern} <= bytes; at += sizeof kPattern) {
    std::memcpy(memory + at, &kPattern, sizeof kPattern);
  }
  if (at < bytes) {
    std::memcpy(memory + at, &kPattern, 1);
  }
}

} // namespace tdist::sim
