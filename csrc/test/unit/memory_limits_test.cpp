// How much memory is left, on machines made of files.

#include "memory_limits.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace tdist::sim {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

class MemoryLimits : public testing::Test {
protected:
  MemoryLimits() {
    std::string name = fs::temp_directory_path() / "tdist-machine-XXXXXX";
    root = mkdtemp(name.data());
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  99 kB\n"
                          "MemAvailable:    8388608 kB\nBuffers: 7 kB\n");
  }
  ~MemoryLimits() override { fs::remove_all(root); }

  void write(const std::string &path, const std::string &content) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << content;
  }

  fs::path root;
};

TEST_F(MemoryLimits, WithoutGroupsTheMachineLimits) {
  const AvailableMemory available = availableMemory(root);
  EXPECT_EQ(available.bytes, 8 * kGibibyte);
  EXPECT_EQ(available.limitedBy, "the machine's memory");
}

TEST_F(MemoryLimits, AGroupOfVersion2Limits) {
  write("proc/self/cgroup", "0::/pods/one\n");
  write("sys/fs/cgroup/pods/one/memory.max", "3221225472\n");
  write("sys/fs/cgroup/pods/one/memory.current", "2147483648\n");
  write("sys/fs/cgroup/pods/one/memory.stat", "anon 5\ninactive_file 1024\nactive_file 77\n");
  const AvailableMemory available = availableMemory(root);
  EXPECT_EQ(available.bytes, kGibibyte + 1024);
  EXPECT_THAT(available.limitedBy, EndsWith("pods/one"));
}

TEST_F(MemoryLimits, TheGroupsAboveCountToo) {
  write("proc/self/cgroup", "0::/pods/one\n");
  write("sys/fs/cgroup/pods/one/memory.max", "max\n");
  write("sys/fs/cgroup/pods/one/memory.current", "1000\n");
  write("sys/fs/cgroup/pods/memory.max", "4096\n");
  write("sys/fs/cgroup/pods/memory.current", "5000\n");
  const AvailableMemory available = availableMemory(root);
  EXPECT_EQ(available.bytes, 0) << "never below nothing";
  EXPECT_THAT(available.limitedBy, EndsWith("cgroup/pods"));
}

TEST_F(MemoryLimits, AGroupOfVersion1Limits) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/elsewhere\n4:memory:/docker/x\n0::/\n");
  write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/docker/x/memory.stat", "inactive_file 9\ntotal_inactive_file 4096\n");
  EXPECT_EQ(availableMemory(root).bytes, kGibibyte + 4096);
}

TEST_F(MemoryLimits, AContainerSeesItsOwnGroupAsTheRoot) {
  write("proc/self/cgroup", "4:memory:/docker/of/the/host\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(availableMemory(root).bytes, kGibibyte);
}

} // namespace
} // namespace tdist::sim
