// Fibers: stacks of their own that a thread switches to and back from.
#pragma once

#include "sanitizer.h"
#include "stack.h"

#include <boost/context/fiber.hpp>
#include <memory>

namespace tdist::sim {

/// Runs one body after the other on one stack. A body may stop for ever in the middle (leave()),
/// and a suspended one may be given up (abandon()): then nothing on its stack is destroyed. So
/// neither the body nor what it calls may own anything while it can be suspended.
class Fiber {
public:
  using Body = void (*)(void *);

  Fiber() = default;
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber();

  // By the thread.
  /// Begins `body(argument)`; returns when it is suspended, done or has left.
  void start(Body body, void *argument);
  /// Goes on behind suspend(); returns when the body is suspended again, done or has left.
  void resume();
  /// Gives up the suspended body, if there is one.
  void abandon() noexcept;
  /// Whether a body has begun and is neither done nor given up.
  [[nodiscard]] bool isBusy() const noexcept { return body != nullptr; }

  // By the body.
  void suspend();
  [[noreturn]] void leave();

private:
  void create();
  void end() noexcept;
  [[noreturn]] void loop();
  void switchIn();

  Stack stack;
  boost::context::fiber inside;  // the fiber, while the thread runs
  boost::context::fiber outside; // the thread, while the fiber runs
  SanitizerContext insideContext;
  SanitizerContext outsideContext;
  Body body = nullptr;
  void *argument = nullptr;
  bool isAlive = false; // has a context on its stack
  bool isGivenUp = false;
};

/// An idle fiber, from the process's pool where it has one: mapping a stack takes some 10 us.
std::unique_ptr<Fiber> takeFiber();
/// Back to the pool. A body that is still suspended is given up.
void returnFiber(std::unique_ptr<Fiber> fiber) noexcept;

} // namespace tdist::sim
