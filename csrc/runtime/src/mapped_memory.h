// Whether memory that a kernel names is there at all.
#pragma once

#include <cstdint>

namespace tdist::sim {

/// Whether all of [address, address + bytes) is mapped in this process. Asks the kernel: below a
/// microsecond. `bytes` is at least 1.
bool isMapped(std::uint64_t address, std::int64_t bytes) noexcept;

} // namespace tdist::sim
