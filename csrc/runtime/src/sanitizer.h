// Tells AddressSanitizer and ThreadSanitizer about switches of stacks. Boost as distributions ship
// it does not. Without a sanitizer all of this is empty.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TDIST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TDIST_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define TDIST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TDIST_TSAN 1
#endif
#endif

#if defined(TDIST_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TDIST_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tdist::sim {

/// One of the stacks that are switched between, as the sanitizers see it: a fiber's, or that of the
/// thread that runs it.
class SanitizerContext {
public:
  /// ThreadSanitizer counts the fibers of a forked process as ended with its threads.
#if defined(TDIST_TSAN)
  static constexpr bool kOutlivesFork = false;
#else
  static constexpr bool kOutlivesFork = true;
#endif

  /// Of a fiber whose stack is given.
  void create([[maybe_unused]] const void *bottom, [[maybe_unused]] std::size_t size) noexcept {
#if defined(TDIST_ASAN)
    stackBottom = bottom;
    stackSize = size;
    fakeStack = nullptr;
    ASAN_UNPOISON_MEMORY_REGION(bottom, size); // frames of a fiber that was given up
#endif
#if defined(TDIST_TSAN)
    fiber = __tsan_create_fiber(0);
#endif
  }

  /// Of the calling thread, before it switches to a fiber.
  void adoptThread() noexcept {
#if defined(TDIST_TSAN)
    fiber = __tsan_get_current_fiber();
#endif
  }

  /// Around what runs on a new stack before anything can arrive there.
  void beginSetup() const noexcept { switchThreadSanitizer(); }
  void endSetup() const noexcept { switchThreadSanitizer(); }

  void destroy() noexcept {
#if defined(TDIST_TSAN)
    __tsan_destroy_fiber(fiber);
#endif
  }

  /// Right before the switch away from this stack, which will be taken up again.
  void leaveFor(const SanitizerContext &next) noexcept {
#if defined(TDIST_ASAN)
    __sanitizer_start_switch_fiber(&fakeStack, next.stackBottom, next.stackSize);
#endif
    next.switchThreadSanitizer();
  }

  /// The same for a stack that will never be taken up again.
  static void leaveForGood(const SanitizerContext &next) noexcept {
#if defined(TDIST_ASAN)
    __sanitizer_start_switch_fiber(nullptr, next.stackBottom, next.stackSize);
#endif
    next.switchThreadSanitizer();
  }

  /// Right after the switch to this stack. `previous` learns what its stack is.
  void arriveFrom([[maybe_unused]] SanitizerContext &previous) noexcept {
#if defined(TDIST_ASAN)
    __sanitizer_finish_switch_fiber(fakeStack, &previous.stackBottom, &previous.stackSize);
#endif
  }

private:
  void switchThreadSanitizer() const noexcept {
#if defined(TDIST_TSAN)
    __tsan_switch_to_fiber(fiber, 0);
#endif
  }

#if defined(TDIST_ASAN)
  const void *stackBottom = nullptr;
  std::size_t stackSize = 0;
  void *fakeStack = nullptr;
#endif
#if defined(TDIST_TSAN)
  void *fiber = nullptr;
#endif
};

} // namespace tdist::sim
