// The segments of all PEs of a job in this process's address space.
#pragma once

#include "address.h"
#include "control_area.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tdist::sim {

/// A file descriptor that is closed with its owner.
class FileDescriptor {
public:
  explicit FileDescriptor(int fd) noexcept : fd(fd) {}
  FileDescriptor(const FileDescriptor &) = delete;
  FileDescriptor &operator=(const FileDescriptor &) = delete;
  ~FileDescriptor();

  [[nodiscard]] int get() const noexcept { return fd; }

private:
  int fd;
};

/// One contiguous range of addresses, with every PE's segment at a multiple of `stride()`. The
/// stride is a multiple of 2 MiB, so the distance of two PEs is a whole number of elements whatever
/// their size.
class Segments {
public:
  /// Bytes of one segment; throws Error unless `heapBytes` is a size that can be.
  static std::int64_t segmentBytes(std::int64_t heapBytes);

  /// Maps `fds`, in order of PEs. Throws Error naming the PE whose memfd does not fit.
  Segments(std::span<const std::int32_t> fds, std::int64_t heapBytes);
  Segments(const Segments &) = delete;
  Segments &operator=(const Segments &) = delete;
  ~Segments();

  [[nodiscard]] std::int32_t count() const noexcept { return pes; }
  [[nodiscard]] std::int64_t stride() const noexcept { return bytes; }
  [[nodiscard]] std::int64_t heapBytes() const noexcept { return heap; }
  [[nodiscard]] ControlArea &control(std::int32_t pe) const noexcept {
    return *reinterpret_cast<ControlArea *>(base + pe * bytes);
  }
  [[nodiscard]] std::byte *heapBase(std::int32_t pe) const noexcept {
    return base + pe * bytes + kControlBytes;
  }
  /// Whether the address is in the segment of some PE.
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept {
    return address - addressOf(base) < static_cast<std::uint64_t>(pes * bytes);
  }
  [[nodiscard]] std::int32_t peOf(std::uint64_t address) const noexcept {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(address - addressOf(base)) / bytes);
  }
  /// Offset in the heap of the PE that has the address; negative in its control area.
  [[nodiscard]] std::int64_t offsetOf(std::uint64_t address) const noexcept {
    return static_cast<std::int64_t>(address - addressOf(base)) % bytes - kControlBytes;
  }

private:
  std::int32_t pes;
  std::int64_t heap;
  std::int64_t bytes;
  std::byte *base;
};

} // namespace tdist::sim
