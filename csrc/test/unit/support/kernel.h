// Kernels for tests: written in C++, called and calling as compiled kernels do.
#pragma once

#include "tdist_sim.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tdist::test {

inline constexpr std::int64_t kSliceNs = 20'000'000;
inline constexpr std::int32_t kCores = 40;
inline constexpr std::int64_t kSlotBytes = 64; // between the signals of one wait

/// For device functions that take a source location.
inline constexpr tdist_loc kHere{"kernel.py", 41, 7};

// How the language numbers what a kernel passes on.
inline constexpr std::int32_t kNotifySet = 1;
inline constexpr std::int32_t kNotifyAdd = 2;
inline constexpr std::int32_t kSignalSet = 0;
inline constexpr std::int32_t kSignalAdd = 1;
inline constexpr std::int32_t kEq = 0;
inline constexpr std::int32_t kNe = 1;
inline constexpr std::int32_t kGt = 2;
inline constexpr std::int32_t kGe = 3;
inline constexpr std::int32_t kLt = 4;
inline constexpr std::int32_t kLe = 5;

using Grid = std::array<std::int32_t, 3>;
using Arguments = std::vector<std::uint64_t>;

/// Gives a launch to a stream, and returns its position there.
std::int64_t give(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments,
                  std::int64_t stream, const char *name = "test_kernel");

/// A launch in a stream of its own, on an NPU of `cores` with one worker; given up with its owner.
class Launched {
public:
  Launched(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments = {},
           std::int32_t cores = kCores, const char *name = "test_kernel");
  Launched(const Launched &) = delete;
  Launched &operator=(const Launched &) = delete;
  ~Launched();

  /// Waits for one slice, as tdist_rt_stream_wait() does.
  int run(std::int64_t sliceNs = kSliceNs);
  /// Slices until it is not 1.
  int finish();

private:
  static constexpr std::int64_t kGiveUpNs = 30'000'000'000;

  std::int64_t stream = 0;
  std::int64_t position = 0;
};

/// Runs to the end; fails the test when the launch fails.
void launch(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments = {},
            std::int32_t cores = kCores);

/// Runs until it fails; gives the text, "" when it does not fail.
std::string failureOf(tdist_kernel_fn kernel, const Grid &grid, const Arguments &arguments = {},
                      std::int32_t cores = kCores);

/// A new allocation of the heap of this process, which is PE `pe`; its bytes are zero.
std::uint64_t allocate(int pe, std::int64_t bytes);

/// What a kernel gets for a pointer operand, and the other way round.
template <class T> T *pointer(std::uint64_t address) {
  return reinterpret_cast<T *>(address); // NOLINT(performance-no-int-to-ptr): the ABI's form
}
template <class T> std::uint64_t addressOf(T *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
inline std::int64_t operand(std::uint64_t address) { return static_cast<std::int64_t>(address); }

/// Where device functions want an address, `count` signals further.
inline std::int64_t slot(std::uint64_t signals, std::int64_t count) {
  return operand(signals) + count * kSlotBytes;
}

} // namespace tdist::test
