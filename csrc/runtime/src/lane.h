// One simulated core: the program that runs on it now, and what that program waits for.
#pragma once

#include "compare.h"
#include "deferred_memory.h"
#include "fiber.h"
#include "idle.h"
#include "job.h"
#include "local_memory.h"
#include "tdist_sim.h"
#include "traced_program.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tdist::sim {

class Launch;

/// Words of this PE's heap, `stride` bytes apart, each to be seen once as wanted, one by one.
struct WordWait {
  std::uint64_t address; // of the word that is waited for now
  std::int64_t offset;   // of that word in the heap
  std::int32_t width;    // bytes
  std::int32_t stride;   // bytes
  std::int32_t index;    // of that word
  std::int32_t count;
  Compare compare;
  std::int64_t wanted;
  std::int64_t seen; // the last value that was as wanted
};

class Lane {
public:
  using Program = std::array<std::int32_t, 3>;

  explicit Lane(Launch &launch);
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;
  /// Gives up the program, if one is in flight.
  ~Lane();

  /// The lane whose program is running on this thread; nullptr outside of launches.
  static Lane *current() noexcept;

  // By the launch and the engine, which is locked but for run().
  void assign(const Program &program) noexcept;
  [[nodiscard]] Launch &owner() const noexcept { return launch; }
  /// Whether no program is in flight.
  [[nodiscard]] bool isFree() const noexcept { return state == State::Free; }
  [[nodiscard]] bool isSpinning() const noexcept { return state == State::Yielded; }
  [[nodiscard]] bool isInBarrier() const noexcept { return state == State::WaitsForBarrier; }
  /// Whether the program has come to a barrier that nobody has counted it at yet; from here on it
  /// waits there.
  bool takeArrival() noexcept;
  /// Whether the program can go on. Looks at the words it waits for.
  [[nodiscard]] bool canRun() noexcept;
  /// Whether a thread runs the program now. Kept by the engine.
  bool isRunning = false;
  /// Whether nothing else in this rank waits for a thread, so that the program may hold its own for
  /// a moment. Kept by the engine, for each run().
  bool isAlone = false;
  /// Runs the program until it waits, yields, ends or fails.
  void run();
  /// Why the program has failed; "" as long as it has not.
  [[nodiscard]] const std::string &failure() const noexcept { return why; }
  /// Puts the wait in the job's table, or brings it up to date there.
  void list();
  /// The listed wait has changed: list() will write it again.
  void listAgain() noexcept { isListingCurrent = false; }
  /// In the strict mode, lets one thing that the suspended program has done become visible; false:
  /// there is none.
  bool progress() { return deferredMemory && deferredMemory->progress(); }
  [[nodiscard]] const Program &program() const noexcept { return pid; }
  /// "; kernel K, program (x,y,z), file:line, rank R"
  [[nodiscard]] std::string place() const;

  // By the program's calls of device functions.
  /// What the program calls now, for reports.
  void enter(const char *newPrimitive, const tdist_loc *newLocation) noexcept {
    primitive = newPrimitive;
    location = newLocation;
  }
  [[nodiscard]] const char *calls() const noexcept { return primitive; }
  [[nodiscard]] TracedProgram &traced() noexcept { return trace; }
  /// Throws Error when the launch was begun outside of a job.
  [[nodiscard]] Job &job() const;
  /// How the program uses symmetric memory in the strict mode; empty outside of it.
  [[nodiscard]] std::optional<DeferredMemory> &deferred() noexcept { return deferredMemory; }
  /// In the strict mode, lets others run now and then. Nothing may be alive in the caller that has
  /// a destructor.
  void pause();
  /// Who signals, when the program does: it, from the call that it is in.
  [[nodiscard]] Author author();
  [[nodiscard]] Job *launchJob() const noexcept;
  [[nodiscard]] LocalMemory &memory() noexcept { return localMemory; }
  /// Returns the value that was as wanted.
  std::int64_t waitForWords(const WordWait &newWait);
  void waitForBarrier();
  /// For a program that waits by itself: others must run before it can go on.
  void yield();
  /// The same, in a loop of the kernel's own at that place.
  void spin(const tdist_loc *loop);
  /// For a program that computes: others get their turn once it has run for long.
  void takeTurns();
  /// Gives up the program for `why`.
  void fail(std::string reason) noexcept;
  [[noreturn]] void leave() { fiber->leave(); }

private:
  enum class State { Free, Ready, Yielded, WaitsForWords, ArrivesAtBarrier, WaitsForBarrier };

  static void runProgram(void *self);
  void beginStrict();
  void nap(std::int64_t longestNs);
  void finishStrict();
  void suspend(State newState);
  [[nodiscard]] bool isInLoop() const noexcept {
    return state == State::Yielded && loop != nullptr;
  }
  void unlist() noexcept;
  /// Whether all words have been seen; moves on over those that are as wanted.
  bool advance() noexcept;
  /// The same, after some looks in a row where the engine has nothing better to do.
  bool advancePolling() noexcept;

  Launch &launch;
  std::unique_ptr<Fiber> fiber;
  State state = State::Free;
  Program pid{};
  const char *primitive = "";
  const tdist_loc *location = nullptr;
  LocalMemory localMemory;
  std::string why;
  Clock::time_point turnBegan; // when the program last had to let others run, as far as it knows
  const tdist_loc *loop = nullptr; // that it spins in, if it does
  std::int64_t spinsSince = 0;
  TracedProgram trace;
  WordWait wait{};
  std::int32_t polledWaits = 0; // how many waits in a row were over before the engine heard of them
  std::uint64_t barrierPassage = 0; // of the launch, when the program arrived
  std::optional<DeferredMemory> deferredMemory;
  Dice dice{0};
  // Numbers of the places that the program has signalled from lately.
  struct KnownPlace {
    const tdist_loc *location;
    std::uint32_t number;
  };
  std::array<KnownPlace, 4> knownPlaces{};
  // The wait's record in the job's table.
  bool isListed = false;
  bool isListingCurrent = false;
  std::int64_t waitsSince = 0;
  WaitSlot *slot = nullptr; // nullptr though listed: the table was full
};

} // namespace tdist::sim
