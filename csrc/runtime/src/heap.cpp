#include "heap.h"

#include "error.h"
#include "memory_limits.h"
#include "wait_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace tdist::sim {
namespace {

std::int64_t roundUp(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t roundDown(std::int64_t value, std::int64_t multiple) {
  return value / multiple * multiple;
}

std::int64_t pageSize() {
  static const std::int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

/// Throws Error where taking `bytes` more could wake the OOM killer.
void checkMemoryFor(std::int64_t bytes) {
  // Left for everybody else: what this process itself needs to go on and to report.
  constexpr std::int64_t kReserve = std::int64_t{64} << 20;
  const AvailableMemory available = availableMemory();
  if (bytes > available.bytes - kReserve) {
    throw Error(
        concat("no memory for ", bytes, " bytes of symmetric heap: ", available.limitedBy, " has ",
               available.bytes, " bytes available, of which ", kReserve,
               " are kept free; use smaller tensors or fewer ranks on this host, or give it "
               "more memory"));
  }
}

} // namespace

Heap::Heap(int fd, std::int64_t fileOffset, std::int64_t bytes, std::span<AllocationSlot> table)
    : fd(fd), fileOffset(fileOffset), size(bytes), table(table),
      unused{{0, roundUp(bytes, kAlignment)}} {}

std::int64_t Heap::allocate(std::int64_t bytes, std::int64_t alignment) {
  if (bytes <= 0) {
    throw Error(concat("an allocation of ", bytes, " bytes of symmetric heap: ask for at least 1"));
  }
  if (alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    throw Error(concat("alignment ", alignment, " of a symmetric allocation is no power of two"));
  }
  const std::scoped_lock lock(mutex);
  if (bytes > size) {
    throw Error(whyNoRoom(bytes));
  }
  const std::int64_t extent = roundUp(bytes, kAlignment);
  std::int64_t offset = 0;
  const auto range = findFree(extent, std::max(alignment, kAlignment), offset);
  if (range == unused.end()) {
    throw Error(whyNoRoom(bytes));
  }
  reservePages(offset, extent);
  const auto [begin, end] = *range;
  unused.erase(range);
  if (begin < offset) {
    unused.emplace(begin, offset);
  }
  if (offset + extent < end) {
    unused.emplace(offset + extent, end);
  }
  const std::optional<std::size_t> slot = takeSlot();
  live.emplace(offset, Block{bytes, extent, slot});
  if (slot) {
    table[*slot].publish(offset, bytes, monotonicNanoseconds());
  }
  inUse += extent;
  highest = std::max(highest, offset + extent);
  return offset;
}

std::optional<std::size_t> Heap::takeSlot() {
  if (!returnedSlots.empty()) {
    return returnedSlots.extract(returnedSlots.begin()).value();
  }
  return slotsTaken < table.size() ? std::optional(slotsTaken++) : std::nullopt;
}

Heap::Ranges::iterator Heap::findFree(std::int64_t extent, std::int64_t alignment,
                                      std::int64_t &offset) {
  return std::find_if(unused.begin(), unused.end(), [&](const auto &range) {
    offset = roundUp(range.first, alignment);
    return offset + extent <= range.second;
  });
}

std::string Heap::whyNoRoom(std::int64_t bytes) const {
  std::int64_t largest = 0;
  for (const auto &[begin, end] : unused) {
    largest = std::max(largest, end - begin);
  }
  return concat("no room for ", bytes, " bytes in the symmetric heap: it has ", size, " bytes, ",
                size - std::min(size, inUse), " of them free, at most ", largest,
                " in one piece; ask for a larger heap at initialisation (local_mem_size), or free "
                "symmetric tensors");
}

void Heap::reservePages(std::int64_t offset, std::int64_t extent) const {
  checkMemoryFor(extent);
  int result = 0;
  do { // a signal ends fallocate, and undoes it
    result = fallocate(fd, 0, fileOffset + offset, extent);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    throw Error(concat("the pages of ", extent,
                       " bytes of symmetric heap cannot be reserved: ", systemErrorText(errno)));
  }
}

void Heap::release(std::int64_t offset) {
  const std::scoped_lock lock(mutex);
  const auto block = live.find(offset);
  if (block == live.end()) {
    throw Error(concat("offset ", offset,
                       " of the symmetric heap is not the beginning of a live "
                       "allocation: it was freed before, or never allocated"));
  }
  const std::int64_t blockEnd = offset + block->second.extent;
  std::int64_t begin = offset;
  std::int64_t end = blockEnd;
  inUse -= block->second.extent;
  if (const std::optional<std::size_t> slot = block->second.slot) {
    table[*slot].withdraw();
    returnedSlots.insert(*slot);
  }
  live.erase(block);
  auto after = unused.lower_bound(begin);
  if (after != unused.begin()) {
    if (const auto before = std::prev(after); before->second == begin) {
      begin = before->first;
      unused.erase(before);
    }
  }
  if (after != unused.end() && after->first == end) {
    end = after->second;
    after = unused.erase(after);
  }
  unused.emplace_hint(after, begin, end);
  // Only whole pages, and only those that the block had a part in: the others went before.
  dropPages(std::max(roundUp(begin, pageSize()), roundDown(offset, pageSize())),
            std::min(roundDown(end, pageSize()), roundUp(blockEnd, pageSize())));
}

void Heap::dropPages(std::int64_t begin, std::int64_t end) const noexcept {
  if (begin < end) {
    // A failure costs memory until the job ends, and nothing else.
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, fileOffset + begin,
                    end - begin);
  }
}

std::int64_t Heap::used() const {
  const std::scoped_lock lock(mutex);
  return inUse;
}

std::atomic<std::size_t> &Heap::hintFor(std::int64_t offset) const noexcept {
  return hints[static_cast<std::size_t>(offset / kAlignment) % kHints];
}

std::optional<Heap::Allocation> Heap::find(std::int64_t offset, std::int64_t bytes) const {
  // Without the lock, by what is published: signals and waits look for the same few words again and
  // again. The slot itself says whether the hint is good (see AllocationSlot); hence relaxed.
  std::atomic<std::size_t> &hint = hintFor(offset);
  if (const std::size_t slot = hint.load(std::memory_order_relaxed); slot < table.size()) {
    const AllocationSlot::Range range = table[slot].range();
    if (range.end != 0 && range.holds(offset, bytes)) {
      return Allocation{range.begin, range.end - range.begin, slot};
    }
  }
  const std::scoped_lock lock(mutex);
  const auto next = live.upper_bound(offset);
  if (next == live.begin()) {
    return std::nullopt;
  }
  const auto &[begin, block] = *std::prev(next);
  if (offset - begin > block.bytes - bytes) {
    return std::nullopt;
  }
  if (block.slot) {
    hint.store(*block.slot, std::memory_order_relaxed);
  }
  return Allocation{begin, block.bytes, block.slot};
}

std::string Heap::whyNotLive(std::int64_t offset, std::int64_t bytes) const {
  const std::scoped_lock lock(mutex);
  if (offset >= size) {
    return concat("is past the end of the heap's ", size, " bytes");
  }
  const auto next = live.upper_bound(offset);
  if (next != live.begin()) {
    const auto &[begin, block] = *std::prev(next);
    if (offset < begin + block.extent) {
      return concat("is in the allocation of ", block.bytes, " bytes at offset ", begin, ", and ",
                    bytes, " bytes from there are past its end");
    }
  }
  std::string why = offset < highest ? "is in no live allocation: it was freed"
                                     : "is in no live allocation: it was never allocated";
  if (next != live.begin()) {
    const auto &[begin, block] = *std::prev(next);
    why += concat(" (the one before has ", block.bytes, " bytes at offset ", begin, ")");
  }
  return why;
}

} // namespace tdist::sim
