#include "segments.h"

#include "error.h"

#include <cerrno>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tdist::sim {
namespace {

constexpr std::int64_t kGranule = std::int64_t{2} << 20;
constexpr std::int64_t kLargestHeap = std::int64_t{1} << 46; // the address space is 2^47 bytes

/// Address space without memory, at a multiple of kGranule.
std::byte *reserve(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void *mapped =
      mmap(nullptr, size + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error(concat("no address space for the symmetric heaps of all PEs (", bytes,
                       " bytes): ", systemErrorText(errno), "; ask for smaller heaps"));
  }
  auto *first = static_cast<std::byte *>(mapped);
  const std::size_t before = (kGranule - addressOf(first) % kGranule) % kGranule;
  if (before != 0) {
    munmap(first, before);
  }
  if (before != kGranule) {
    munmap(first + before + size, kGranule - before);
  }
  return first + before;
}

} // namespace

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) {
    close(fd);
  }
}

std::int64_t Segments::segmentBytes(std::int64_t heapBytes) {
  if (heapBytes <= 0 || heapBytes > kLargestHeap) {
    throw Error(concat("a symmetric heap of ", heapBytes, " bytes cannot be: 1 to ", kLargestHeap,
                       " are possible"));
  }
  return (kControlBytes + heapBytes + kGranule - 1) / kGranule * kGranule;
}

Segments::Segments(std::span<const std::int32_t> fds, std::int64_t heapBytes)
    : pes(static_cast<std::int32_t>(fds.size())), heap(heapBytes), bytes(segmentBytes(heapBytes)) {
  for (std::int32_t pe = 0; pe < pes; ++pe) {
    struct stat status{};
    if (fstat(fds[pe], &status) != 0) {
      throw Error(concat("the memfd of PE ", pe, " (descriptor ", fds[pe],
                         ") cannot be used: ", systemErrorText(errno)));
    }
    // A mapping may reach behind the end of a file, and then kills who touches it.
    if (status.st_size < bytes) {
      throw Error(concat("the memfd of PE ", pe, " has ", status.st_size, " bytes, and a heap of ",
                         heapBytes, " bytes needs ", bytes, " (tdist_rt_segment_bytes)"));
    }
  }
  if (pes > std::numeric_limits<std::int64_t>::max() / 2 / bytes) {
    throw Error(concat(pes, " symmetric heaps of ", heapBytes, " bytes are too many to address"));
  }
  base = reserve(pes * bytes);
  for (std::int32_t pe = 0; pe < pes; ++pe) {
    void *mapped = mmap(base + pe * bytes, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, fds[pe], 0);
    if (mapped == MAP_FAILED) {
      const int error = errno;
      munmap(base, static_cast<std::size_t>(pes * bytes));
      throw Error(concat("the memfd of PE ", pe, " (descriptor ", fds[pe],
                         ") cannot be mapped: ", systemErrorText(error)));
    }
  }
}

Segments::~Segments() { munmap(base, static_cast<std::size_t>(pes * bytes)); }

} // namespace tdist::sim
