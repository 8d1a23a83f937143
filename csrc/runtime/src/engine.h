// What runs a rank's launches: streams, the cores they share, and the threads that run programs.
#pragma once

#include "cores.h"
#include "doorbell.h"
#include "idle.h"
#include "job.h"
#include "launch.h"
#include "step.h"
#include "tdist_sim.h"
#include "work.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tdist::sim {

/// One a process. Everything is under one lock, which no program holds while it runs: picking a
/// program looks at a few words. Threads that run programs ("servers") are the engine's own workers
/// and host threads that wait; at most `workers` serve at a time, unless all of them only watch.
class Engine {
public:
  /// Of this process. A forked child has one of its own, without what its parent has not finished.
  static Engine &instance();

  /// What the simulated NPU has; acts on programs that start from now on. `workers` 0: chosen.
  void configure(const Cores &cores, std::int32_t workers);

  StreamPosition launch(std::shared_ptr<Job> job, const tdist_launch &description);
  StreamPosition append(std::int64_t stream, std::shared_ptr<Work> work,
                        const std::shared_ptr<Job> &job);

  /// The end of a stream as it is now.
  [[nodiscard]] StreamPosition end(std::int64_t stream);
  [[nodiscard]] bool isReached(const StreamPosition &position);

  // Waits of the host, until the deadline at the latest; true: done. The thread runs programs
  // meanwhile. They throw Error with the first failure that nobody has been told of.
  bool waitFor(const StreamPosition &position, Clock::time_point deadline);
  bool waitForAll(Clock::time_point deadline);
  /// Until nothing before the end of the stream is still using one of `ranges`.
  bool waitForMemory(std::int64_t stream, std::span<const MemoryRange> ranges,
                     Clock::time_point deadline);

  /// How many things the streams still have to do. Without the lock: for a quick look.
  [[nodiscard]] std::int64_t unfinished() const noexcept {
    // Acquire: who sees that a launch has ended sees what it stored.
    return unfinishedCount.load(std::memory_order_acquire);
  }
  /// Whether there is a failure that nobody has been told of. Without the lock, too.
  [[nodiscard]] bool hasFailure() const noexcept {
    return hasFailed.load(std::memory_order_acquire);
  }
  /// Whether anything unfinished, in whatever stream, was given memory of `range`.
  [[nodiscard]] bool isInUse(const MemoryRange &range);
  /// For how long all programs in flight have waited, in loops of their own too; nanoseconds, 0
  /// while one gets on.
  [[nodiscard]] std::int64_t blockedNanoseconds();
  /// Whether no program runs or can run, as all PEs have been told. Looks at all that is waited
  /// for, also at what has found no room in the table of waits.
  bool isQuiet();
  /// CLOCK_MONOTONIC, nanoseconds; 0: not yet.
  [[nodiscard]] std::int64_t reachedAt(const Mark &mark);

  /// Forgets all that is unfinished; true once no program of it runs any more.
  bool giveUp(Clock::time_point deadline);
  /// The same, and ends the workers.
  bool stop(Clock::time_point deadline);

private:
  using Lock = std::unique_lock<std::mutex>;

  struct Stream {
    std::deque<std::shared_ptr<Work>> works;
    std::int64_t enqueued = 0;
    std::int64_t done = 0;
    bool isFrontStarted = false;
    bool isStopped = false; // by a failure that nobody has been told of
  };
  struct Active {
    std::shared_ptr<Launch> launch;
    std::int64_t stream;
    std::int32_t inFlight = 0; // programs
    bool isGivenUp = false;
  };
  struct ActiveStep {
    std::shared_ptr<Step> step;
    std::int64_t stream;
    std::shared_ptr<Job> job;
    bool isRunning = false;
    bool isListed = false;
    WaitSlot *slot = nullptr; // nullptr though listed: the table was full
  };
  enum class Served { Something, Nothing, SliceOver };

  Engine();

  // Streams.
  void advance(std::int64_t stream);
  void advanceWaiting();
  void pop(Stream &stream);
  void finish(std::int64_t stream);
  void fail(std::int64_t stream, const std::string &text);
  void drop(Stream &stream);
  [[nodiscard]] bool hasReached(const StreamPosition &position) const;
  [[nodiscard]] bool isUsing(const StreamPosition &end, const MemoryRange &range) const;

  // Programs.
  Served serve(Lock &lock, IdleRule &idle);
  Lane *pick();
  bool letProgress();
  [[nodiscard]] bool isAnythingPending() const;
  [[nodiscard]] Active *findStartable();
  [[nodiscard]] ActiveStep *findReadyStep();
  void run(Lock &lock, Lane &lane);
  void run(Lock &lock, ActiveStep &step);
  static void unlist(ActiveStep &step) noexcept;
  void settle(Lane &lane);
  void removeLane(Active &active, const Lane &lane);
  void abandon(Active &active);
  void retire(Active &active);
  [[nodiscard]] Active &activeOf(const Lane &lane);
  [[nodiscard]] bool canAnyRun();
  [[nodiscard]] bool isAnySpinning() const;
  void publish(bool canRun) noexcept;
  void listWaits();

  // Threads.
  void work();
  void linger(Lock &lock);
  void wakeWorker();
  void startWorker();
  void announce();
  void noteCompletion();
  [[nodiscard]] std::int32_t limit() const;
  template <class IsMet> bool wait(Clock::time_point deadline, const IsMet &isMet);
  template <class IsMet> void park(Lock &lock, Clock::time_point deadline, const IsMet &isMet);
  void throwFailure();
  void discardAll();

  std::mutex mutex;
  std::condition_variable forWorkers;
  std::condition_variable forHosts;

  Cores all;
  Cores unused;
  std::int32_t workerLimit = 0; // 0: chosen

  std::unordered_map<std::int64_t, Stream> streams;
  std::deque<Active> active; // in the order in which they came to the front of their streams
  std::deque<ActiveStep> steps;
  std::vector<Lane *> inFlight;
  std::size_t cursor = 0; // the lane whose turn it is
  std::size_t fruitless = 0;
  Dice dice{Strict::seed()}; // of turns, in the strict mode
  std::string failure;
  std::atomic<bool> hasFailed = false;

  std::atomic<std::int64_t> unfinishedCount = 0;
  std::atomic<std::uint64_t> completions = 0;
  std::atomic<std::uint64_t> additions = 0;

  std::shared_ptr<Job> sleepJob; // whose doorbell wakes servers
  Doorbell ownBell{};            // for launches outside of jobs
  std::int64_t blockedSince = 0; // no program has got on since then; 0: one just has
  bool isPublishedRunnable = false;

  std::vector<std::thread> threads;
  std::int32_t parkedWorkers = 0;
  std::int32_t lingeringWorkers = 0; // have just run out of work, and look for more by themselves
  std::int32_t parkedHosts = 0;
  std::int32_t serving = 0; // workers
  std::int32_t helping = 0; // host threads
  std::int32_t running = 0; // programs and steps
  // Threads that wait for something to run. Several may come and go, a host beside a worker.
  std::int32_t watchers = 0;
  bool isStopping = false;
  bool hasNoThreads = false; // the system gives no more
};

} // namespace tdist::sim
