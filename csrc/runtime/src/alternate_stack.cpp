#include "alternate_stack.h"

#include <csignal>
#include <cstddef>
#include <sys/mman.h>

namespace tdist::sim {
namespace {

class AlternateStack {
public:
  AlternateStack() noexcept {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) {
      return; // somebody else gave the thread one
    }
    void *mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      return; // an overflow will be silent, nothing else is lost
    }
    memory = mapped;
    stack_t own{};
    own.ss_sp = memory;
    own.ss_size = kBytes;
    sigaltstack(&own, nullptr);
  }
  AlternateStack(const AlternateStack &) = delete;
  AlternateStack &operator=(const AlternateStack &) = delete;
  ~AlternateStack() {
    if (memory == nullptr) {
      return;
    }
    stack_t current{};
    if (sigaltstack(nullptr, &current) == 0 && current.ss_sp == memory) {
      stack_t none{};
      none.ss_flags = SS_DISABLE;
      sigaltstack(&none, nullptr);
    }
    munmap(memory, kBytes);
  }

private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  void *memory = nullptr;
};

} // namespace

void ensureAlternateStack() noexcept { static thread_local const AlternateStack stack; }

} // namespace tdist::sim
