// Memory of a kernel's program: its tiles.
#pragma once

#include <cstdint>

namespace tdist::sim {

/// Frees what is still allocated when it is destroyed or cleared.
class LocalMemory {
public:
  LocalMemory() = default;
  LocalMemory(const LocalMemory &) = delete;
  LocalMemory &operator=(const LocalMemory &) = delete;
  ~LocalMemory() { clear(); }

  /// Throws Error for sizes and alignments that cannot be, and where there is no memory.
  void *allocate(std::int64_t alignment, std::int64_t bytes);
  void release(void *memory) noexcept;
  void clear() noexcept;

private:
  /// Right before what allocate() returned.
  struct Header {
    Header *previous;
    Header *next;
    void *block; // as malloc gave it
  };

  Header *first = nullptr;
};

} // namespace tdist::sim
