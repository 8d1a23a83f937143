#include "launch.h"

#include "alternate_stack.h"
#include "error.h"

#include <algorithm>
#include <utility>

namespace tdist::sim {
namespace {

std::int64_t checkedPrograms(const std::string &kernel, const Launch::Grid &grid) {
  // Each factor is below 2^31, so the product of two fits and the third is checked by division.
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (std::ranges::any_of(grid, [](std::int32_t extent) { return extent < 0; })) {
    throw Error(concat("kernel ", kernel, ": grid (", grid[0], ",", grid[1], ",", grid[2],
                       ") has a negative extent"));
  }
  const std::int64_t plane = std::int64_t{grid[0]} * grid[1];
  if (grid[2] != 0 && plane > kMost / grid[2]) {
    throw Error(concat("kernel ", kernel, ": grid (", grid[0], ",", grid[1], ",", grid[2],
                       ") has more than ", kMost, " programs"));
  }
  return plane * grid[2];
}

std::int32_t checkedCores(const std::string &kernel, std::int32_t cores) {
  if (cores < 1) {
    throw Error(concat("kernel ", kernel, ": ", cores, " cores: expected at least 1"));
  }
  return cores;
}

} // namespace

Launch::Launch(std::shared_ptr<Job> job, tdist_kernel_fn function, std::string kernelName,
               const Grid &grid, std::int32_t cores, std::span<const std::uint64_t> arguments)
    : ownJob(std::move(job)), function(function), name(std::move(kernelName)), grid(grid),
      cores(checkedCores(name, cores)), arguments(arguments.begin(), arguments.end()),
      programs(checkedPrograms(name, grid)) {}

void Launch::call(const Lane::Program &program) const {
  function(arguments.data(), grid.data(), program.data());
}

bool Launch::run(Clock::time_point deadline) {
  if (isRunning.test_and_set(std::memory_order_acquire)) {
    throw Error(concat("kernel ", name, ": this launch is being run already, by another thread"));
  }
  // Release: a thread that runs the next slice finds everything as this one left it.
  struct Guard {
    std::atomic_flag &flag;
    ~Guard() { flag.clear(std::memory_order_release); }
  } const guard{isRunning};
  ensureAlternateStack();

  constexpr int kRoundsPerLook = 32; // a look at the clock costs as much as a switch
  int rounds = 0;
  IdleRule idle(ownJob ? &ownJob->doorbell() : nullptr, deadline);
  while (!hasFailed && !hasEnded()) {
    switch (runLanes(deadline)) {
    case Progress::Some:
      idle.reset();
      // Programs that only wake each other end no slice by ending.
      if (++rounds % kRoundsPerLook == 0 && Clock::now() >= deadline) {
        listWaits();
        return false;
      }
      break;
    case Progress::SliceOver:
      listWaits();
      return false;
    case Progress::None:
      if (idle.isPatient()) {
        listWaits();
      }
      const bool isSpinning =
          std::ranges::any_of(lanes, [](const auto &lane) { return lane->isSpinning(); });
      if (idle.step(isSpinning, [this] { return canAnyRun(); }) == IdleRule::Step::SliceOver) {
        listWaits();
        return false;
      }
      break;
    }
  }
  lanes.clear();
  if (hasFailed) {
    throw Error(failure);
  }
  return true;
}

Launch::Progress Launch::runLanes(Clock::time_point deadline) {
  passBarrierIfComplete();
  Progress progress = Progress::None;
  for (std::size_t turn = 0; turn < lanes.size(); ++turn) {
    Lane &lane = *lanes[cursor];
    cursor = (cursor + 1) % lanes.size();
    if ((lane.isFree() && !assignNext(lane)) || !lane.canRun()) {
      continue;
    }
    if (const Progress served = serve(lane, deadline); served != Progress::None) {
      progress = served;
    }
    if (hasFailed || progress == Progress::SliceOver) {
      return progress;
    }
  }
  while (started < programs && std::cmp_less(lanes.size(), cores)) {
    Lane &lane = *lanes.emplace_back(std::make_unique<Lane>(*this));
    assignNext(lane);
    progress = serve(lane, deadline);
    if (hasFailed || progress == Progress::SliceOver) {
      return progress;
    }
  }
  return progress;
}

Launch::Progress Launch::serve(Lane &lane, Clock::time_point deadline) {
  const bool wasSpinning = lane.isSpinning();
  do {
    lane.run();
    if (hasFailed) {
      return Progress::Some;
    }
    if (!lane.isFree()) {
      return wasSpinning && lane.isSpinning() ? Progress::None : Progress::Some;
    }
    noteEnd(lane);
    if (hasFailed || hasEnded()) {
      return Progress::Some;
    }
    if (Clock::now() >= deadline) {
      return Progress::SliceOver;
    }
  } while (assignNext(lane));
  return Progress::Some;
}

bool Launch::assignNext(Lane &lane) noexcept {
  if (started == programs) {
    return false;
  }
  const std::int64_t row = started / grid[0];
  lane.assign({static_cast<std::int32_t>(started % grid[0]),
               static_cast<std::int32_t>(row % grid[1]), static_cast<std::int32_t>(row / grid[1])});
  ++started;
  return true;
}

bool Launch::canAnyRun() {
  return (isCrossing && ownJob->isPassed(&ControlArea::deviceBarrier, crossing)) ||
         std::ranges::any_of(
             lanes, [](const auto &lane) { return !lane->isSpinning() && lane->canRun(); });
}

void Launch::listWaits() {
  for (const auto &lane : lanes) {
    lane->list();
  }
}

void Launch::noteEnd(const Lane &lane) {
  if (ended == 0) {
    endedFirst = lane.program();
  }
  ++ended;
  if (gathered == 0) {
    return;
  }
  // Not the ended program is in the wrong place, but those that wait for it.
  const auto waiting =
      std::ranges::find_if(lanes, [](const auto &other) { return other->isInBarrier(); });
  const auto &[x, y, z] = lane.program();
  fail(**waiting, concat((*waiting)->calls(), " can never be passed: program (", x, ",", y, ",", z,
                         ") of the same launch has ended without reaching it"));
}

void Launch::arriveAtBarrier(const Lane &lane) {
  const char *what = lane.calls();
  if (programs > cores) {
    throw Error(concat(what, " can never be passed: it waits for all ", programs,
                       " programs of the launch, of which only ", cores,
                       " run at a time; launch at most ", cores));
  }
  if (ended > 0) {
    const auto &[x, y, z] = endedFirst;
    throw Error(concat(what, " can never be passed: program (", x, ",", y, ",", z,
                       ") of the same launch has ended without reaching it"));
  }
  (void)lane.job(); // throws outside of a job
  ++gathered;
  for (const auto &other : lanes) {
    if (other->isInBarrier()) {
      other->listAgain();
    }
  }
  if (gathered == programs) {
    gathered = 0;
    isCrossing = true;
    crossing = ownJob->arrive(&ControlArea::deviceBarrier);
    passBarrierIfComplete();
  }
}

void Launch::passBarrierIfComplete() noexcept {
  if (isCrossing && ownJob->isPassed(&ControlArea::deviceBarrier, crossing)) {
    isCrossing = false;
    ++passages;
  }
}

void Launch::describeBarrier(tdist_wait_record &record) const noexcept {
  record.offset = -1;
  record.compare = static_cast<std::int32_t>(Compare::Ge);
  record.count = 1;
  if (isCrossing) {
    record.kind = TDIST_WAIT_DEVICE_BARRIER;
    record.wanted = ownJob->worldSize();
    record.epoch = crossing;
  } else {
    record.kind = TDIST_WAIT_GRID_BARRIER;
    record.wanted = programs;
    record.has = gathered;
  }
}

void Launch::fail(const Lane &lane, std::string why) noexcept {
  failure = std::move(why) + lane.place();
  hasFailed = true;
}

} // namespace tdist::sim
