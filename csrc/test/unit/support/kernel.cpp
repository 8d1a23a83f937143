#include "kernel.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tdist::test {

Launched::Launched(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                   std::int32_t cores, const char *name)
    : launch(tdist_rt_launch_begin(kernel, name, grid.data(), cores, arguments.data(),
                                   static_cast<std::int32_t>(arguments.size()))) {
  EXPECT_NE(launch, nullptr) << tdist_rt_last_error();
}

Launched::~Launched() { tdist_rt_launch_end(launch); }

int Launched::run(std::int64_t sliceNs) { return tdist_rt_launch_run(launch, sliceNs); }

int Launched::finish() {
  int result = 1;
  while (result == 1) {
    result = run();
  }
  return result;
}

void launch(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
            std::int32_t cores) {
  Launched launched(kernel, grid, arguments, cores);
  EXPECT_EQ(launched.finish(), 0) << tdist_rt_last_error();
}

std::string failureOf(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                      std::int32_t cores) {
  Launched launched(kernel, grid, arguments, cores);
  return launched.finish() == -1 ? tdist_rt_last_error() : "";
}

std::uint64_t allocate(int pe, std::int64_t bytes) {
  const std::int64_t offset = tdist_rt_heap_alloc(bytes, 64);
  EXPECT_GE(offset, 0) << tdist_rt_last_error();
  auto *memory = static_cast<std::byte *>(tdist_rt_heap_base(pe)) + offset;
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return addressOf(memory);
}

} // namespace tdist::test
