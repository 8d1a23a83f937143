#include "memory_limits.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace tdist::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The number on the line of `path` that begins with `key`.
std::optional<std::int64_t> numberAfter(const fs::path &path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (std::int64_t value = 0; word == key && file >> value) {
      return value;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// The number a file consists of; nothing for "max" and for numbers beyond 64 bits.
std::optional<std::int64_t> numberIn(const fs::path &path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) {
    return value;
  }
  return std::nullopt;
}

struct Files {
  const char *limit;
  const char *usage;
  const char *droppable; // key in memory.stat
};
constexpr Files kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Files kVersion2{"memory.max", "memory.current", "inactive_file"};

std::int64_t leftIn(const fs::path &group, const Files &files) {
  const auto limit = numberIn(group / files.limit);
  const auto usage = numberIn(group / files.usage);
  if (!limit || !usage) {
    return kUnlimited;
  }
  const std::int64_t droppable = numberAfter(group / "memory.stat", files.droppable).value_or(0);
  return std::max<std::int64_t>(*limit - *usage + droppable, 0);
}

/// Lowers `available` to what the group at `path` and those above it leave.
void applyGroups(const fs::path &root, const std::string &path, const Files &files,
                 AvailableMemory &available) {
  // In a container the path may be one that only the host can see: the root then is our own group.
  fs::path group = root / fs::path(path).relative_path();
  for (; group.string().size() >= root.string().size(); group = group.parent_path()) {
    if (const std::int64_t left = leftIn(group, files); left < available.bytes) {
      available = {left, "the control group " + group.string()};
    }
  }
}

} // namespace

AvailableMemory availableMemory(const fs::path &root) {
  constexpr std::int64_t kKibibyte = 1024;
  AvailableMemory available{kUnlimited, "the machine's memory"};
  if (const auto kibibytes = numberAfter(root / "proc/meminfo", "MemAvailable:")) {
    available.bytes = *kibibytes * kKibibyte;
  }
  // Lines are "hierarchy-ID:controllers:path"; version 2 has no controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      applyGroups(root / "sys/fs/cgroup", path, kVersion2, available);
    } else if (controllers.find("memory") != std::string::npos) {
      applyGroups(root / "sys/fs/cgroup/memory", path, kVersion1, available);
    }
  }
  return available;
}

} // namespace tdist::sim
