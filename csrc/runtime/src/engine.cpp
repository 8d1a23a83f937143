// The host's side of the engine: streams, and waits for them. scheduler.cpp has the programs' side.
#include "engine.h"

#include "alternate_stack.h"
#include "error.h"
#include "wait_table.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <system_error>
#include <utility>

namespace tdist::sim {
namespace {

// As an Ascend910B3 has them.
constexpr Cores kDefaultCores{.aic = 20, .aiv = 40};

std::int32_t hostCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

/// This process's engine. Never destroyed: at exit a thread may still be inside a program.
std::atomic<Engine *> current = nullptr;
std::mutex makingEngine;

void lockBeforeFork() { makingEngine.lock(); }
void unlockInParent() { makingEngine.unlock(); }
void startAfreshInChild() {
  // The threads of the old engine are not here, and one of them may have held its lock.
  static Engine *volatile inherited = nullptr; // for leak checkers
  inherited = current.exchange(nullptr, std::memory_order_relaxed);
  (void)inherited;
  makingEngine.unlock();
}

} // namespace

Engine &Engine::instance() {
  // Acquire and release: who finds the engine finds it made.
  if (Engine *engine = current.load(std::memory_order_acquire)) {
    return *engine;
  }
  static const int atFork = pthread_atfork(lockBeforeFork, unlockInParent, startAfreshInChild);
  (void)atFork;
  const std::scoped_lock lock(makingEngine);
  Engine *engine = current.load(std::memory_order_relaxed);
  if (engine == nullptr) {
    engine = new Engine;
    current.store(engine, std::memory_order_release);
  }
  return *engine;
}

Engine::Engine() : all(kDefaultCores), unused(kDefaultCores) {}

void Engine::configure(const Cores &cores, std::int32_t workers) {
  if (cores.aic < 0 || cores.aiv < 0 || cores.aic + cores.aiv == 0 || workers < 0) {
    throw Error(concat("a simulated NPU of ", cores.aic, " cube and ", cores.aiv,
                       " vector cores with ", workers, " workers cannot be"));
  }
  const Lock lock(mutex);
  // What programs in flight hold stays theirs: `unused` may be below zero for a while.
  unused += cores;
  unused -= all;
  all = cores;
  workerLimit = workers;
}

std::int32_t Engine::limit() const {
  if (workerLimit > 0) {
    return workerLimit;
  }
  // More threads than the host has cores only take them from each other.
  constexpr std::int32_t kEnough = 4;
  static const std::int32_t cores = hostCores();
  const std::int32_t ranks = sleepJob ? sleepJob->worldSize() : 1;
  return std::clamp(cores / ranks, 1, kEnough);
}

// ---- Streams

StreamPosition Engine::launch(std::shared_ptr<Job> job, const tdist_launch &description) {
  Cores cores;
  {
    const Lock lock(mutex);
    cores = all;
  }
  auto launch = std::make_shared<Launch>(job, description, cores);
  return append(description.stream, std::move(launch), job);
}

StreamPosition Engine::append(std::int64_t stream, std::shared_ptr<Work> work,
                              const std::shared_ptr<Job> &job) {
  StreamPosition position{stream, 0};
  {
    Lock lock(mutex);
    if (job && job != sleepJob) {
      sleepJob = job;
      sleepJob->publishEngine(isPublishedRunnable);
    }
    Stream &entry = streams[stream];
    position.number = ++entry.enqueued;
    if (work->kind() == Work::Kind::Mark) {
      static_cast<Mark &>(*work).position = position;
    }
    entry.works.push_back(std::move(work));
    // Relaxed: the lock orders it; readers without the lock only take a quick look.
    unfinishedCount.fetch_add(1, std::memory_order_relaxed);
    if (entry.isStopped) {
      drop(entry);
      advanceWaiting();
    } else if (entry.works.size() == 1) {
      advance(stream);
    }
    if (active.empty() && steps.empty()) {
      return position; // what was added was done at once, or waits for another stream
    }
    publish(true);
    additions.fetch_add(1, std::memory_order_relaxed);
    wakeWorker();
  }
  announce();
  return position;
}

/// Starts what is at the front, and does what can be done at once.
void Engine::advance(std::int64_t id) {
  Stream &stream = streams[id];
  while (!stream.works.empty()) {
    if (stream.isFrontStarted) {
      return;
    }
    const std::shared_ptr<Work> &front = stream.works.front();
    switch (front->kind()) {
    case Work::Kind::Launch: {
      auto launch = std::static_pointer_cast<Launch>(front);
      if (!launch->hasEnded()) { // as one without programs has
        stream.isFrontStarted = true;
        active.push_back({std::move(launch), id});
        return;
      }
      break;
    }
    case Work::Kind::Step:
      stream.isFrontStarted = true;
      steps.push_back(
          {.step = std::static_pointer_cast<Step>(front), .stream = id, .job = sleepJob});
      return;
    case Work::Kind::Wait:
      if (!hasReached(static_cast<const PositionWait &>(*front).position)) {
        return;
      }
      break;
    case Work::Kind::Mark:
      static_cast<Mark &>(*front).reachedAt = monotonicNanoseconds();
      break;
    }
    pop(stream);
  }
}

void Engine::pop(Stream &stream) {
  stream.works.pop_front();
  stream.isFrontStarted = false;
  ++stream.done;
  noteCompletion();
  // Release: see unfinished().
  if (unfinishedCount.fetch_sub(1, std::memory_order_release) == 1) {
    blockedSince = 0;
    publish(false);
    sleepJob.reset(); // what has ended keeps no memory mapped
  }
}

/// What was at the front has been done.
void Engine::finish(std::int64_t id) {
  pop(streams[id]);
  advance(id);
  advanceWaiting();
}

/// Streams that wait for others may go on.
void Engine::advanceWaiting() {
  bool hasChanged = true;
  while (hasChanged) {
    hasChanged = false;
    for (auto &[id, stream] : streams) {
      if (!stream.works.empty() && stream.works.front()->kind() == Work::Kind::Wait) {
        const std::int64_t before = stream.done;
        advance(id);
        hasChanged = hasChanged || stream.done != before;
      }
    }
  }
}

/// What was at the front has failed: what is behind it is not done, as with ACL_STOP_ON_FAILURE,
/// nor what is added until somebody is told.
void Engine::fail(std::int64_t id, const std::string &text) {
  if (!hasFailed) {
    hasFailed = true;
    failure = text;
  }
  streams[id].isStopped = true;
  drop(streams[id]);
  advanceWaiting();
}

void Engine::drop(Stream &stream) {
  for (const std::shared_ptr<Work> &work : stream.works) {
    if (work->kind() == Work::Kind::Mark) {
      static_cast<Mark &>(*work).reachedAt = monotonicNanoseconds();
    }
  }
  while (!stream.works.empty()) {
    pop(stream);
  }
}

bool Engine::hasReached(const StreamPosition &position) const {
  const auto found = streams.find(position.stream);
  return position.number == 0 || (found != streams.end() && found->second.done >= position.number);
}

StreamPosition Engine::end(std::int64_t stream) {
  const Lock lock(mutex);
  return {stream, streams[stream].enqueued};
}

bool Engine::isReached(const StreamPosition &position) {
  const Lock lock(mutex);
  return hasReached(position);
}

/// Whether something that comes before `end` is still using the memory. Positions that a stream
/// waits for are older than the wait, so the recursion ends.
bool Engine::isUsing(const StreamPosition &end, const MemoryRange &range) const {
  const auto found = streams.find(end.stream);
  if (found == streams.end()) {
    return false;
  }
  const Stream &stream = found->second;
  for (std::size_t i = 0;
       i < stream.works.size() && stream.done + static_cast<std::int64_t>(i) < end.number; ++i) {
    const Work &work = *stream.works[i];
    if (work.isGiven(range) || (work.kind() == Work::Kind::Wait &&
                                isUsing(static_cast<const PositionWait &>(work).position, range))) {
      return true;
    }
  }
  return false;
}

bool Engine::isInUse(const MemoryRange &range) {
  if (unfinished() == 0) {
    return false;
  }
  const Lock lock(mutex);
  return std::ranges::any_of(streams,
                             [&](const auto &entry) {
                               return std::ranges::any_of(
                                   entry.second.works,
                                   [&](const auto &work) { return work->isGiven(range); });
                             }) ||
         std::ranges::any_of(active, [&](const Active &one) { return one.launch->isGiven(range); });
}

// ---- Waits of the host

void Engine::throwFailure() {
  if (hasFailed) {
    hasFailed = false;
    for (auto &entry : streams) {
      entry.second.isStopped = false;
    }
    throw Error(std::exchange(failure, {}));
  }
}

template <class IsMet> bool Engine::wait(Clock::time_point deadline, const IsMet &isMet) {
  Lock lock(mutex);
  throwFailure();
  if (isMet()) {
    return true;
  }
  ensureAlternateStack();
  std::shared_ptr<Job> job = sleepJob;
  IdleRule idle(job ? &job->doorbell() : &ownBell, deadline);
  constexpr int kRoundsPerLook = 32; // a look at the clock costs as much as a switch
  int rounds = 0;
  bool isOver = false;
  while (!isOver && !hasFailed && !isMet()) {
    if (helping + running >= limit()) {
      park(lock, deadline, isMet);
      isOver = Clock::now() >= deadline;
      continue;
    }
    ++helping;
    const Served served = serve(lock, idle);
    --helping;
    isOver =
        served == Served::SliceOver ||
        (served == Served::Something && ++rounds % kRoundsPerLook == 0 && Clock::now() >= deadline);
  }
  if (unfinished() != 0) {
    wakeWorker();
  }
  throwFailure();
  return isMet();
}

/// Others run programs, and this thread waits for them: first as somebody who expects an answer
/// at once.
template <class IsMet>
void Engine::park(Lock &lock, Clock::time_point deadline, const IsMet &isMet) {
  constexpr std::chrono::microseconds kYielding{20};
  const std::uint64_t seen = completions.load(std::memory_order_relaxed);
  lock.unlock();
  const Clock::time_point patience = std::min(Clock::now() + kYielding, deadline);
  while (completions.load(std::memory_order_relaxed) == seen && Clock::now() < patience) {
    sched_yield();
  }
  lock.lock();
  if (hasFailed || isMet() || completions.load(std::memory_order_relaxed) != seen) {
    return;
  }
  // Whoever ends something wakes; what a look by this thread itself could find is found by those
  // who run programs.
  constexpr std::chrono::milliseconds kLongest{10};
  ++parkedHosts;
  forHosts.wait_until(lock, std::min<Clock::time_point>(deadline, Clock::now() + kLongest));
  --parkedHosts;
}

bool Engine::waitFor(const StreamPosition &position, Clock::time_point deadline) {
  return wait(deadline, [&] { return hasReached(position); });
}

bool Engine::waitForAll(Clock::time_point deadline) {
  return wait(deadline, [&] { return unfinished() == 0; });
}

bool Engine::waitForMemory(std::int64_t stream, std::span<const MemoryRange> ranges,
                           Clock::time_point deadline) {
  const StreamPosition last = end(stream);
  return wait(deadline, [&] {
    return std::ranges::none_of(ranges,
                                [&](const MemoryRange &range) { return isUsing(last, range); });
  });
}

std::int64_t Engine::blockedNanoseconds() {
  const Lock lock(mutex);
  const bool isBlocked = unfinished() != 0 && running == 0 && blockedSince != 0;
  return isBlocked ? monotonicNanoseconds() - blockedSince : 0;
}

bool Engine::isQuiet() {
  const Lock lock(mutex);
  return unfinished() == 0 || (running == 0 && !isPublishedRunnable && !canAnyRun());
}

std::int64_t Engine::reachedAt(const Mark &mark) {
  const Lock lock(mutex);
  return mark.reachedAt;
}

// ---- The end

/// Leaves nothing in any stream. Programs that run on other threads now are forgotten when they
/// come back.
void Engine::discardAll() {
  for (auto &entry : streams) {
    entry.second.isStopped = false;
    drop(entry.second);
  }
  std::erase_if(steps, [](ActiveStep &step) {
    unlist(step);
    return !step.isRunning;
  });
  for (Active &one : active) {
    one.isGivenUp = true;
  }
  for (std::size_t i = active.size(); i > 0; --i) {
    abandon(active[i - 1]);
  }
  hasFailed = false;
  failure.clear();
}

bool Engine::giveUp(Clock::time_point deadline) {
  Lock lock(mutex);
  discardAll();
  while (running > 0 && Clock::now() < deadline) {
    ++parkedHosts;
    forHosts.wait_until(lock, deadline);
    --parkedHosts;
  }
  return running == 0;
}

bool Engine::stop(Clock::time_point deadline) {
  if (!giveUp(deadline)) {
    return false; // the process ends with its threads
  }
  std::vector<std::thread> ending;
  {
    const Lock lock(mutex);
    isStopping = true;
    additions.fetch_add(1, std::memory_order_relaxed);
    ending.swap(threads);
    forWorkers.notify_all();
  }
  announce();
  for (std::thread &thread : ending) {
    thread.join();
  }
  const Lock lock(mutex);
  isStopping = false;
  return true;
}

// ---- Threads

/// One more thread shall look for programs to run.
void Engine::wakeWorker() {
  // Who lingers finds it, and wakes others where there is more.
  if (lingeringWorkers > 0 || helping + serving >= limit()) {
    return;
  }
  if (parkedWorkers > 0) {
    forWorkers.notify_one();
  } else if (!hasNoThreads && std::cmp_less(threads.size(), limit())) {
    startWorker();
  }
}

void Engine::startWorker() {
  // Signals are for the host's threads: they run Python's handlers. Faults stay where they happen.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
    sigdelset(&blocked, fault);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  try {
    threads.emplace_back([this] { work(); });
    pthread_setname_np(threads.back().native_handle(), "tdist-worker");
  } catch (const std::system_error &) {
    hasNoThreads = true; // the host's own waits run the programs then
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Engine::work() {
  ensureAlternateStack();
  constexpr std::chrono::milliseconds kGlance{2};
  Lock lock(mutex);
  std::shared_ptr<Job> job;
  IdleRule idle(&ownBell, Clock::time_point::max());
  const auto park = [&](const auto &sleep) {
    ++parkedWorkers;
    sleep();
    --parkedWorkers;
    idle.reset();
  };
  while (!isStopping) {
    if (active.empty() && steps.empty()) {
      // Its doorbell goes with the job's memory.
      job.reset();
      idle = IdleRule(&ownBell, Clock::time_point::max());
      linger(lock);
      if (active.empty() && steps.empty() && !isStopping) {
        park([&] { forWorkers.wait(lock); });
      }
      continue;
    }
    // With as many others as there may be, or one that watches already: a glance now and then, for
    // a watcher that runs a long program itself.
    if (helping + serving >= limit() || (watchers > 0 && !canAnyRun())) {
      park([&] { forWorkers.wait_for(lock, kGlance); });
      continue;
    }
    if (job != sleepJob) {
      job = sleepJob;
      idle = IdleRule(job ? &job->doorbell() : &ownBell, Clock::time_point::max());
    }
    ++serving;
    (void)serve(lock, idle);
    --serving;
  }
}

/// Looks for work for a while, so that whoever launches often need not wake anybody. A host that
/// waits at once for what it has launched runs it itself: it is left to it for a moment, since to
/// hand it over takes longer than most such launches. The moment covers the way back of a slow host
/// from its launch to its wait; a longer one only delays a kernel whose host does not wait.
void Engine::linger(Lock &lock) {
  constexpr std::chrono::microseconds kLingering{50};
  constexpr std::chrono::microseconds kLeft{20};
  std::uint64_t seen = additions.load(std::memory_order_relaxed);
  ++lingeringWorkers;
  lock.unlock();
  Clock::time_point end = Clock::now() + kLingering;
  // Relaxed: what was added is looked at with the lock held.
  for (Clock::time_point now{}; now < end; now = Clock::now()) {
    if (additions.load(std::memory_order_relaxed) == seen) {
      sched_yield();
    } else if (unfinishedCount.load(std::memory_order_relaxed) == 0) {
      seen = additions.load(std::memory_order_relaxed);
      end = now + kLingering;
    } else if (end > now + kLeft) {
      end = now + kLeft;
    }
  }
  lock.lock();
  --lingeringWorkers;
}

/// Servers that sleep look again. Without the lock.
void Engine::announce() {
  std::shared_ptr<Job> job;
  {
    const Lock lock(mutex);
    job = sleepJob;
  }
  ownBell.ring();
  if (job) {
    job->doorbell().ring();
  }
}

/// Hosts that wait look again.
void Engine::noteCompletion() {
  // Relaxed: parked hosts look at the streams with the lock held.
  completions.fetch_add(1, std::memory_order_relaxed);
  if (parkedHosts > 0) {
    forHosts.notify_all();
  }
  if (helping > 0) {
    ownBell.ring();
    if (sleepJob) {
      sleepJob->doorbell().ring();
    }
  }
}

} // namespace tdist::sim
