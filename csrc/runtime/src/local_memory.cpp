#include "local_memory.h"

#include "error.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace tdist::sim {

void *LocalMemory::allocate(std::int64_t alignment, std::int64_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::int64_t kLargest = std::int64_t{1} << 40; // no machine has more to give
  if (bytes < 0) {
    throw Error(concat("a program asks for ", bytes, " bytes of local memory"));
  }
  if (alignment < 0 || alignment > kLargest ||
      (alignment != 0 && !std::has_single_bit(static_cast<std::uint64_t>(alignment)))) {
    throw Error(concat("a program asks for local memory at a multiple of ", alignment,
                       ", which is no power of two"));
  }
  const std::size_t multiple = std::max(static_cast<std::size_t>(alignment), kCacheLine);
  static_assert(sizeof(Header) <= kCacheLine);
  void *block = nullptr;
  if (bytes > kLargest ||
      posix_memalign(&block, multiple, multiple + static_cast<std::size_t>(bytes)) != 0) {
    throw Error(concat("no memory for ", bytes, " bytes that a program asks for"));
  }
  std::byte *memory = static_cast<std::byte *>(block) + multiple;
  first = new (memory - sizeof(Header)) Header{nullptr, first, block};
  if (first->next != nullptr) {
    first->next->previous = first;
  }
  return memory;
}

void LocalMemory::release(void *memory) noexcept {
  if (memory == nullptr) {
    return;
  }
  auto *header = reinterpret_cast<Header *>(static_cast<std::byte *>(memory) - sizeof(Header));
  if (header->previous != nullptr) {
    header->previous->next = header->next;
  } else {
    first = header->next;
  }
  if (header->next != nullptr) {
    header->next->previous = header->previous;
  }
  std::free(header->block);
}

void LocalMemory::clear() noexcept {
  while (first != nullptr) {
    Header *header = first;
    first = header->next;
    std::free(header->block);
  }
}

} // namespace tdist::sim
