// A stack for a fiber.
#pragma once

#include <cstddef>

namespace tdist::sim {

/// Memory of its own with a guard page below, so that an overflow faults instead of spoiling
/// others.
class Stack {
public:
  static constexpr std::size_t kUsableBytes = std::size_t{256} << 10;

  Stack();
  Stack(const Stack &) = delete;
  Stack &operator=(const Stack &) = delete;
  ~Stack();

  [[nodiscard]] std::byte *bottom() const noexcept { return lowest; }
  [[nodiscard]] std::byte *top() const noexcept { return lowest + kUsableBytes; }

private:
  std::byte *lowest; // usable; the guard is below
};

} // namespace tdist::sim
