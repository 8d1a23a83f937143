#include "kernel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>

namespace tdist::test {

Launched::Launched(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                   std::int32_t cores, const char *name) {
  static std::atomic<std::int64_t> lastStream{0};
  EXPECT_EQ(tdist_rt_configure(cores, cores, /*workers=*/1), 0) << tdist_rt_last_error();
  stream = ++lastStream;
  position = give(kernel, grid, arguments, stream, name);
  EXPECT_EQ(position, 1) << tdist_rt_last_error();
}

Launched::~Launched() {
  if (tdist_rt_stream_reached(stream, position) != 1) {
    EXPECT_EQ(tdist_rt_give_up(kGiveUpNs), 0) << "a program neither ends nor waits";
  }
}

int Launched::run(std::int64_t sliceNs) { return tdist_rt_stream_wait(stream, position, sliceNs); }

int Launched::finish() {
  int result = 1;
  while (result == 1) {
    result = run();
  }
  return result;
}

std::int64_t give(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                  std::int64_t stream, const char *name) {
  tdist_launch description{};
  description.function = kernel;
  description.kernel_name = name;
  description.file = "host.py";
  description.line = 7;
  description.args = arguments.data();
  description.stream = stream;
  std::ranges::copy(grid, description.grid);
  description.aiv = 1;
  description.n_args = static_cast<std::int32_t>(arguments.size());
  const std::uint64_t none = 0;
  if (arguments.empty()) {
    description.args = &none;
  }
  return tdist_rt_launch(&description);
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
