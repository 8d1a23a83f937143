//===- launches.h - What an NPU still has to do
//------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//
//
// Kernels run in streams, beside the host. The library that runs them is loaded by the first
// launch; until then every stream is empty. Waits are made by Python, in slices, so that Ctrl-C
// works and other ranks are watched; the errors of kernels and of such waits come out as Python's
// exceptions.
//
//===---------------------------------------------------------------------------------------------===//

#ifndef TDIST_TORCH_LAUNCHES_H
#define TDIST_TORCH_LAUNCHES_H

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace tdist::npu {

/// The number by which the launches' library knows a stream. Default streams of several NPUs are
/// numbered downwards from -1.
int64_t streamKey(const c10::Stream &stream);

/// Waits until nothing that comes before the end of the current stream of the storage's NPU is
/// still using it. Does nothing when no unfinished launch was given it.
void waitForMemory(const c10::Storage &storage);

/// Whether an unfinished launch was given memory of [address, address + bytes).
bool isInUse(const void *address, int64_t bytes);

void waitForStream(const c10::Stream &stream);
bool isFinished(const c10::Stream &stream);
void waitForDevice();

/// A moment in a stream.
class Mark {
public:
  Mark() = default;
  Mark(const Mark &) = delete;
  Mark &operator=(const Mark &) = delete;
  ~Mark();

  /// Makes this the end of the stream as it is now.
  void record(const c10::Stream &stream);
  /// When it was reached, in nanoseconds of CLOCK_MONOTONIC; 0: not yet.
  int64_t reachedAt() const;
  /// Waits until it is reached.
  void wait() const;
  /// What `stream` is given next waits for it.
  void block(const c10::Stream &stream) const;

private:
  void release();

  void *handle = nullptr; // none: there were no launches
  int64_t recordedAt = 0;
};

} // namespace tdist::npu

#endif // TDIST_TORCH_LAUNCHES_H
