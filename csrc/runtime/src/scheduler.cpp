// Which program runs next, and what becomes of one that has run for a while.
#include "engine.h"
#include "error.h"
#include "wait_table.h"

#include <algorithm>
#include <exception>

namespace tdist::sim {

/// Runs one program until it waits, or lets some time pass when none can run.
Engine::Served Engine::serve(Lock &lock, IdleRule &idle) {
  if (ActiveStep *step = findReadyStep()) {
    publish(true);
    blockedSince = 0;
    run(lock, *step);
    idle.reset();
    return Served::Something;
  }
  // All that spin have had their turn in vain: what they wait for is not here.
  const bool isSpinningInVain = fruitless > 0 && fruitless >= inFlight.size();
  if (Lane *lane = isSpinningInVain ? nullptr : pick()) {
    publish(true);
    const bool wasSpinning = lane->isSpinning();
    run(lock, *lane);
    if (fruitless == 0 || !wasSpinning) {
      idle.reset();
      blockedSince = 0;
    }
    return Served::Something;
  }
  fruitless = 0;
  if (Strict::isOn() && dice.oneIn(4) && letProgress()) {
    return Served::Something;
  }
  if (idle.isPatient() && running == 0) {
    listWaits();
    publish(isSpinningInVain || isAnythingPending());
    if (blockedSince == 0) {
      blockedSince = monotonicNanoseconds();
    }
  }
  ++watchers;
  lock.unlock();
  const IdleRule::Step step = idle.step(isSpinningInVain, [&] {
    const Lock inner(mutex);
    return canAnyRun();
  });
  lock.lock();
  --watchers;
  return step == IdleRule::Step::SliceOver ? Served::SliceOver : Served::Nothing;
}

/// In the strict mode, when nothing else happens: what a suspended program has done becomes
/// visible.
bool Engine::letProgress() {
  return std::ranges::any_of(inFlight,
                             [](Lane *lane) { return !lane->isRunning && lane->progress(); });
}

/// Whether something may still happen by itself: a step of a stream that does not stand in the
/// table of waits, or what the strict mode has kept.
bool Engine::isAnythingPending() const {
  const bool isAnyStep = std::ranges::any_of(
      steps, [](const ActiveStep &step) { return step.isRunning || !step.isListed; });
  return isAnyStep || (Strict::isOn() && std::ranges::any_of(inFlight, [](Lane *lane) {
                         return lane->deferred() && lane->deferred()->mayProgress();
                       }));
}

/// The program whose turn it is: those in flight one after the other, and after each round the
/// queued ones for which there is a core.
Lane *Engine::pick() {
  for (const Active &one : active) {
    one.launch->passBarrierIfComplete();
  }
  if (Strict::isOn() && dice.oneIn(2)) {
    cursor = dice.below(inFlight.size() + 1);
  }
  const auto startNext = [this]() -> Lane * {
    Active *one = findStartable();
    if (one == nullptr) {
      return nullptr;
    }
    unused -= one->launch->coresOfProgram();
    ++one->inFlight;
    Lane *lane = inFlight.emplace_back(&one->launch->startNext());
    cursor = inFlight.size(); // the cores fill up before anyone has a second turn
    return lane;
  };
  for (std::size_t turn = inFlight.size(); turn > 0; --turn) {
    if (cursor >= inFlight.size()) {
      cursor = 0;
      if (Lane *lane = startNext()) {
        return lane;
      }
    }
    Lane *lane = inFlight[cursor++];
    if (!lane->isRunning && lane->canRun()) {
      return lane;
    }
  }
  return startNext();
}

/// The first launch with a queued program for which there are cores. One that finds none keeps
/// those behind it from overtaking on the kinds of cores that it needs.
Engine::Active *Engine::findStartable() {
  Cores available = unused;
  for (Active &one : active) {
    if (one.isGivenUp || one.launch->queued() == 0) {
      continue;
    }
    const Cores &needed = one.launch->coresOfProgram();
    if (available.hasRoomFor(needed)) {
      return &one;
    }
    available.aic = needed.aic > 0 ? 0 : available.aic;
    available.aiv = needed.aiv > 0 ? 0 : available.aiv;
  }
  return nullptr;
}

Engine::ActiveStep *Engine::findReadyStep() {
  const auto found = std::ranges::find_if(
      steps, [](const ActiveStep &step) { return !step.isRunning && step.step->isReady(); });
  return found == steps.end() ? nullptr : &*found;
}

bool Engine::canAnyRun() {
  for (const Active &one : active) {
    one.launch->passBarrierIfComplete();
  }
  return findReadyStep() != nullptr || findStartable() != nullptr ||
         std::ranges::any_of(inFlight, [](Lane *lane) {
           return !lane->isRunning && !lane->isSpinning() && lane->canRun();
         });
}

void Engine::run(Lock &lock, Lane &lane) {
  if (limit() > 1 && canAnyRun()) {
    wakeWorker();
  }
  const bool wasSpinning = lane.isSpinning();
  lane.isRunning = true;
  ++running;
  lane.isAlone =
      std::cmp_equal(inFlight.size(), running) && steps.empty() && findStartable() == nullptr;
  lock.unlock();
  lane.run();
  lock.lock();
  --running;
  lane.isRunning = false;
  fruitless = wasSpinning && lane.isSpinning() ? fruitless + 1 : 0;
  settle(lane);
}

void Engine::run(Lock &lock, ActiveStep &step) {
  unlist(step);
  step.isRunning = true;
  ++running;
  const std::shared_ptr<Step> kept = step.step;
  std::string why;
  lock.unlock();
  try {
    kept->run();
  } catch (const std::exception &error) {
    why = error.what();
  }
  lock.lock();
  --running;
  const auto found = std::ranges::find(steps, kept, &ActiveStep::step);
  const std::int64_t stream = found->stream;
  steps.erase(found);
  const auto &works = streams[stream].works;
  if (works.empty() || works.front() != kept) {
    noteCompletion(); // it was given up meanwhile
  } else if (why.empty()) {
    finish(stream);
  } else {
    fail(stream, why);
  }
}

/// A program has come back from its thread.
void Engine::settle(Lane &lane) {
  Active &one = activeOf(lane);
  Launch &launch = *one.launch;
  if (one.isGivenUp) {
    removeLane(one, lane);
    retire(one);
    return;
  }
  if (!lane.failure().empty()) {
    launch.fail(lane, lane.failure());
  } else if (lane.takeArrival()) {
    launch.arriveAtBarrier(lane);
  } else if (lane.isFree()) {
    removeLane(one, lane);
    launch.noteEnd(lane);
  }
  if (!launch.failure().empty()) {
    one.isGivenUp = true;
    abandon(one);
  } else if (launch.hasEnded()) {
    retire(one);
  }
}

void Engine::removeLane(Active &one, const Lane &lane) {
  const auto found = std::ranges::find(inFlight, &lane);
  if (std::cmp_less(found - inFlight.begin(), cursor)) {
    --cursor;
  }
  inFlight.erase(found);
  --one.inFlight;
  unused += one.launch->coresOfProgram();
}

/// Gives up the programs that no thread runs now.
void Engine::abandon(Active &one) {
  const std::vector<Lane *> lanes(inFlight);
  for (const Lane *lane : lanes) {
    if (&lane->owner() == one.launch.get() && !lane->isRunning) {
      removeLane(one, *lane);
    }
  }
  retire(one);
}

/// Ends a launch, unless some of its programs are still in flight.
void Engine::retire(Active &one) {
  if (one.inFlight > 0) {
    return;
  }
  const std::int64_t stream = one.stream;
  const std::shared_ptr<Launch> launch = one.launch;
  std::erase_if(active, [&](const Active &other) { return other.launch == launch; });
  const auto &works = streams[stream].works;
  if (works.empty() || works.front() != launch) {
    noteCompletion(); // it was given up meanwhile
  } else if (launch->failure().empty()) {
    launch->tellEnd();
    finish(stream);
  } else {
    fail(stream, launch->failure());
  }
}

Engine::Active &Engine::activeOf(const Lane &lane) {
  return *std::ranges::find_if(
      active, [&](const Active &one) { return one.launch.get() == &lane.owner(); });
}

/// Tells the other ranks whether any program of this one can run.
void Engine::publish(bool canRun) noexcept {
  if (canRun == isPublishedRunnable) {
    return;
  }
  isPublishedRunnable = canRun;
  if (sleepJob) {
    sleepJob->publishEngine(canRun);
  }
}

void Engine::listWaits() {
  for (Lane *lane : inFlight) {
    if (!lane->isRunning) {
      lane->list();
    }
  }
  for (ActiveStep &step : steps) {
    if (step.isListed || step.isRunning || step.job == nullptr ||
        step.step->waitRecord().kind == TDIST_WAIT_NONE) {
      continue;
    }
    step.isListed = true;
    step.slot = step.job->waits().acquire();
    if (step.slot != nullptr) {
      tdist_wait_record record = step.step->waitRecord();
      record.since_ns = monotonicNanoseconds();
      step.slot->write(record);
    }
  }
}

void Engine::unlist(ActiveStep &step) noexcept {
  if (step.isListed) {
    step.isListed = false;
    step.job->waits().release(step.slot);
  }
}

} // namespace tdist::sim
