// How much memory this process may still take before the system or its container kills someone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tdist::sim {

struct AvailableMemory {
  std::int64_t bytes;
  std::string limitedBy; // "the machine's memory", or the control group's folder
};

/// The least of what the machine has (MemAvailable) and what the control groups (version 1 or 2)
/// around this process leave. Caches that can be dropped count as available.
/// `root` is where /proc and /sys are looked for.
AvailableMemory availableMemory(const std::filesystem::path &root = "/");

} // namespace tdist::sim
