//===- launches.cpp - What an NPU still has to do
//----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===---------------------------------------------------------------------------------------------===//

// First, as Python asks for it.
#include <torch/csrc/python_headers.h>

#include "launches.h"

#include "device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Exceptions.h>

#include <atomic>
#include <ctime>

namespace tdist::npu {
namespace {

/// Functions of the launches' library, in the order in which Python gives them.
struct Library {
  int64_t (*unfinished)();
  int (*memoryInUse)(const void *address, int64_t bytes);
  int64_t (*streamEnd)(int64_t stream);
  int (*streamReached)(int64_t stream, int64_t position);
  void *(*mark)(int64_t stream);
  int64_t (*markNs)(const void *mark);
  int (*streamWaitMark)(int64_t stream, const void *mark);
  void (*markFree)(void *mark);
};

std::atomic<const Library *> loaded{nullptr};
PyObject *waitInPython = nullptr; // set before `loaded`

/// Waits in Python for `what`; what Python raises is raised on.
void wait(const char *what, int64_t number, const void *address = nullptr, int64_t bytes = 0) {
  pybind11::gil_scoped_acquire gil;
  PyObject *result = PyObject_CallFunction(
      waitInPython, "sLKL", what, static_cast<long long>(number),
      reinterpret_cast<unsigned long long>(address), static_cast<long long>(bytes));
  if (result == nullptr) {
    python_error error;
    error.persist();
    throw std::move(error);
  }
  Py_DECREF(result);
}

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

} // namespace

int64_t streamKey(const c10::Stream &stream) {
  return stream.id() != 0 ? stream.id() : -1 - int64_t{stream.device_index()};
}

void waitForMemory(const c10::Storage &storage) {
  const Library *library = loaded.load(std::memory_order_acquire);
  if (library == nullptr || storage.nbytes() == 0) {
    return;
  }
  // Negative: a kernel has failed, and nobody has been told.
  const int64_t unfinished = library->unfinished();
  const void *address = storage.data();
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  if (unfinished == 0 || (unfinished > 0 && library->memoryInUse(address, bytes) == 0)) {
    return;
  }
  const c10::impl::VirtualGuardImpl guard(kNpu);
  wait("memory", streamKey(guard.getStream(storage.device())), address, bytes);
}

bool isInUse(const void *address, int64_t bytes) {
  const Library *library = loaded.load(std::memory_order_acquire);
  return library != nullptr && library->memoryInUse(address, bytes) == 1;
}

void waitForStream(const c10::Stream &stream) {
  if (loaded.load(std::memory_order_acquire) != nullptr) {
    wait("stream", streamKey(stream));
  }
}

bool isFinished(const c10::Stream &stream) {
  const Library *library = loaded.load(std::memory_order_acquire);
  const int64_t key = streamKey(stream);
  return library == nullptr || library->streamReached(key, library->streamEnd(key)) == 1;
}

void waitForDevice() {
  const Library *library = loaded.load(std::memory_order_acquire);
  if (library != nullptr && library->unfinished() != 0) {
    wait("device", 0);
  }
}

Mark::~Mark() { release(); }

void Mark::release() {
  if (handle != nullptr) {
    loaded.load(std::memory_order_acquire)->markFree(handle);
    handle = nullptr;
  }
}

void Mark::record(const c10::Stream &stream) {
  release();
  recordedAt = now();
  if (const Library *library = loaded.load(std::memory_order_acquire)) {
    handle = library->mark(streamKey(stream));
  }
}

int64_t Mark::reachedAt() const {
  return handle == nullptr ? recordedAt : loaded.load(std::memory_order_acquire)->markNs(handle);
}

void Mark::wait() const {
  if (handle != nullptr) {
    npu::wait("mark", reinterpret_cast<int64_t>(handle));
  }
}

void Mark::block(const c10::Stream &stream) const {
  if (handle != nullptr) {
    loaded.load(std::memory_order_acquire)->streamWaitMark(streamKey(stream), handle);
  }
}

} // namespace tdist::npu

extern "C" {

/// Connects the device with the library that runs launches. `functions`: see Library.
/// `wait(what, number, address, bytes)` is called with the interpreter's lock and waits for
/// "memory" (number: the stream's key), "stream" (its key), "mark" (its handle) or "device".
void tdist_npu_connect(void *const *functions, PyObject *wait) {
  using namespace tdist::npu;
  static_assert(sizeof(Library) == 8 * sizeof(void *));
  Py_INCREF(wait);
  waitInPython = wait;
  loaded.store(new Library(*reinterpret_cast<const Library *>(functions)),
               std::memory_order_release);
}

/// Key of the stream that is current in the calling thread on NPU `index`; negative: the current.
int64_t tdist_npu_current_stream(int32_t index) {
  using namespace tdist::npu;
  const auto device = static_cast<c10::DeviceIndex>(index < 0 ? currentDevice() : index);
  return streamKey(c10::impl::VirtualGuardImpl(kNpu).getStream(c10::Device(kNpu, device)));
}
}
