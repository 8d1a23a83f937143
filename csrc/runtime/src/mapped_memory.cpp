#include "mapped_memory.h"

#include "address.h"

#include <cerrno>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

namespace tdist::sim {

bool isMapped(std::uint64_t address, std::int64_t bytes) noexcept {
  const auto size = static_cast<std::uint64_t>(bytes);
  if (address > std::numeric_limits<std::uint64_t>::max() - size) {
    return false;
  }
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = address / page * page;
  // MS_ASYNC writes nothing back on Linux; what is left of msync is its look for holes.
  return msync(pointerTo<void>(begin), address + size - begin, MS_ASYNC) == 0 || errno != ENOMEM;
}

} // namespace tdist::sim
