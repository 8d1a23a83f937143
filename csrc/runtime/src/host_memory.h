// Copies with `nbi` of the host, which the strict mode keeps until they must be complete.
#pragma once

#include "deferred_memory.h"

#include <mutex>
#include <optional>

namespace tdist::sim {

/// All members may be called from any thread.
class HostMemory {
public:
  /// `job` must live as long as the object.
  explicit HostMemory(Job &job) noexcept : job(job) {}

  /// As in DeferredMemory, but done at once outside of the strict mode.
  void putLater(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                std::int32_t pe);
  void getLater(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                std::int32_t pe);
  void complete();

private:
  DeferredMemory &deferred();

  Job &job;
  std::mutex mutex;
  std::optional<DeferredMemory> memory;
};

} // namespace tdist::sim
