#include "host_memory.h"

namespace tdist::sim {

/// Made when it is needed: then PE 0, whose seed counts, has attached.
DeferredMemory &HostMemory::deferred() {
  if (!memory) {
    memory.emplace(job, Dice(job.control(0).strictSeed)
                            .fork(static_cast<std::uint64_t>(job.rank()))
                            .fork(UINT64_MAX));
  }
  return *memory;
}

void HostMemory::putLater(const char *what, std::uint64_t dst, std::uint64_t src,
                          std::int64_t bytes, std::int32_t pe) {
  if (Strict::isOn()) {
    const std::scoped_lock lock(mutex);
    deferred().putLater(what, dst, src, bytes, pe);
    return;
  }
  job.put(what, dst, src, bytes, pe);
}

void HostMemory::getLater(const char *what, std::uint64_t dst, std::uint64_t src,
                          std::int64_t bytes, std::int32_t pe) {
  if (Strict::isOn()) {
    const std::scoped_lock lock(mutex);
    deferred().getLater(what, dst, src, bytes, pe);
    return;
  }
  job.get(what, dst, src, bytes, pe);
}

void HostMemory::complete() {
  const std::scoped_lock lock(mutex);
  if (memory) {
    memory->complete();
  }
}

} // namespace tdist::sim
