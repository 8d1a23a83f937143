#include "fiber.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace tdist::sim {
namespace {

/// Boost asks an allocator to take back the stack at the fiber's end; ours belongs to Fiber.
struct KeptStack {
  void deallocate(boost::context::stack_context & /*stack*/) const noexcept {}
};

/// Forgets a fiber that shall never go on. Destroying it would unwind its stack by an exception,
/// and compiled kernels have no unwind tables. It owns nothing but the stack, which is not its own.
void forget(boost::context::fiber &&fiber) noexcept {
  alignas(boost::context::fiber) std::byte place[sizeof(boost::context::fiber)];
  new (place) boost::context::fiber(std::move(fiber)); // its lifetime ends with the storage
}

} // namespace

Fiber::~Fiber() { end(); }

void Fiber::end() noexcept {
  if (isAlive) { // in a body, or idle in loop(): suspended either way
    isGivenUp = true;
    switchIn();
  }
}

void Fiber::create() {
  insideContext.create(stack.bottom(), Stack::kUsableBytes);
  outsideContext.adoptThread();
  // The constructor switches to the new stack and back once.
  insideContext.beginSetup();
  boost::context::stack_context where;
  where.sp = stack.top();
  where.size = Stack::kUsableBytes;
  inside = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(where.sp, where.size, where), KeptStack{},
      [this](boost::context::fiber &&thread) -> boost::context::fiber {
        outside = std::move(thread);
        loop();
      });
  outsideContext.endSetup();
  isAlive = true;
  isGivenUp = false;
}

void Fiber::loop() {
  insideContext.arriveFrom(outsideContext);
  for (;;) {
    body(argument);
    body = nullptr;
    suspend();
  }
}

void Fiber::start(Body newBody, void *newArgument) {
  body = newBody;
  argument = newArgument;
  if (!isAlive) {
    create();
  }
  switchIn();
}

void Fiber::resume() { switchIn(); }

void Fiber::abandon() noexcept {
  if (isBusy() || !SanitizerContext::kOutlivesFork) {
    end();
  }
}

void Fiber::switchIn() {
  outsideContext.adoptThread();
  outsideContext.leaveFor(insideContext);
  inside = std::move(inside).resume();
  outsideContext.arriveFrom(insideContext);
  if (!isAlive) {
    forget(std::move(inside));
    insideContext.destroy();
  }
}

void Fiber::suspend() {
  insideContext.leaveFor(outsideContext);
  outside = std::move(outside).resume();
  insideContext.arriveFrom(outsideContext);
  if (isGivenUp) {
    leave();
  }
}

void Fiber::leave() {
  body = nullptr;
  isAlive = false;
  SanitizerContext::leaveForGood(outsideContext);
  (void)std::move(outside).resume();
  std::abort(); // nobody resumes it
}

namespace {

struct Pool {
  static constexpr std::size_t kKept = 256; // 64 MiB of address space, and what was touched of it

  std::mutex mutex;
  std::vector<std::unique_ptr<Fiber>> fibers;
};

Pool &pool() {
  // Never destroyed: at exit a thread may still be inside a launch.
  static Pool &instance = *new Pool;
  return instance;
}

} // namespace

std::unique_ptr<Fiber> takeFiber() {
  {
    const std::scoped_lock lock(pool().mutex);
    if (auto &fibers = pool().fibers; !fibers.empty()) {
      std::unique_ptr<Fiber> fiber = std::move(fibers.back());
      fibers.pop_back();
      return fiber;
    }
  }
  return std::make_unique<Fiber>();
}

void returnFiber(std::unique_ptr<Fiber> fiber) noexcept {
  fiber->abandon();
  const std::scoped_lock lock(pool().mutex);
  auto &fibers = pool().fibers;
  if (fibers.size() < Pool::kKept) {
    fibers.reserve(Pool::kKept);
    fibers.push_back(std::move(fiber));
  }
}

} // namespace tdist::sim
