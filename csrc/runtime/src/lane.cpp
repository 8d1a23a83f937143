#include "lane.h"

#include "error.h"
#include "launch.h"

#include <algorithm>
#include <utility>

namespace tdist::sim {
namespace {

thread_local Lane *runningLane = nullptr;

/// A program may be suspended on one thread and resumed on another, so the address of the variable
/// must not be kept across a switch: hence functions that are never inlined.
[[gnu::noinline]] void setRunningLane(Lane *lane) noexcept { runningLane = lane; }

} // namespace

[[gnu::noinline]] Lane *Lane::current() noexcept { return runningLane; }

Lane::Lane(Launch &launch) : launch(launch), fiber(takeFiber()), trace(launch.traced()) {}

Lane::~Lane() {
  returnFiber(std::move(fiber));
  unlist();
}

void Lane::assign(const Program &program) noexcept {
  pid = program;
  primitive = "";
  location = nullptr;
  why.clear();
  turnBegan = {};
  loop = nullptr;
  trace.begin(launch.kernelName(), pid);
  state = State::Ready;
}

bool Lane::takeArrival() noexcept {
  if (state != State::ArrivesAtBarrier) {
    return false;
  }
  state = State::WaitsForBarrier;
  barrierPassage = launch.barrierPassages();
  return true;
}

bool Lane::canRun() noexcept {
  switch (state) {
  case State::Ready:
  case State::Yielded:
    return true;
  case State::WaitsForWords:
    return advance();
  case State::WaitsForBarrier:
    return barrierPassage != launch.barrierPassages();
  case State::ArrivesAtBarrier:
  case State::Free:
    break;
  }
  return false;
}

void Lane::run() {
  Lane *const outer = current();
  setRunningLane(this);
  // A spin stays listed while it is tried again.
  if (!isInLoop()) {
    unlist();
  }
  if (fiber->isBusy()) {
    fiber->resume();
  } else {
    fiber->start(runProgram, this);
  }
  setRunningLane(outer);
  if (!fiber->isBusy()) {
    state = State::Free;
    trace.end();
    localMemory.clear();
    deferredMemory.reset();
  }
  if (!isInLoop()) {
    unlist();
  }
}

void Lane::runProgram(void *self) {
  auto &lane = *static_cast<Lane *>(self);
  if (Strict::isOn()) {
    lane.beginStrict();
    lane.launch.call(lane.pid);
    lane.finishStrict();
    return;
  }
  lane.launch.call(lane.pid);
}

/// Programs begin late, on some ranks and not on others, so that one which should wait and does not
/// is early.
void Lane::beginStrict() {
  constexpr std::int64_t kLongestDelay = 2'000'000;
  Job *const job = launch.job();
  if (job == nullptr) {
    return;
  }
  dice = Dice(job->control(0).strictSeed)
             .fork(static_cast<std::uint64_t>(job->rank()))
             .fork(launch.serial());
  const bool isLateLaunch = dice.oneIn(2);
  for (const std::int32_t index : pid) {
    dice = dice.fork(static_cast<std::uint64_t>(index));
  }
  deferredMemory.emplace(*job, dice.fork(0));
  if (isLateLaunch || dice.oneIn(8)) {
    nap(kLongestDelay);
  }
}

void Lane::nap(std::int64_t longestNs) {
  const std::int64_t until =
      monotonicNanoseconds() +
      static_cast<std::int64_t>(dice.below(static_cast<std::size_t>(longestNs)));
  while (monotonicNanoseconds() < until) {
    yield();
  }
}

void Lane::pause() {
  constexpr std::int64_t kLongestNap = 200'000;
  if (!deferredMemory) {
    return;
  }
  if (dice.oneIn(16)) {
    nap(kLongestNap);
  } else if (dice.oneIn(4)) {
    yield();
  }
}

/// What the program has stored becomes visible, with pauses in which others see some of it.
void Lane::finishStrict() {
  constexpr std::size_t kMostNaps = 4;
  constexpr std::int64_t kLongestNap = 100'000;
  constexpr std::int64_t kLongestWake = 100'000'000;
  if (!deferredMemory) {
    return;
  }
  for (std::size_t naps = dice.below(kMostNaps + 1); naps > 0; --naps) {
    std::size_t lines = dice.below(deferredMemory->kept() + 1);
    const std::int64_t limit = lines == 0 ? 0 : monotonicNanoseconds() + kLongestWake;
    for (; lines > 0; --lines) {
      deferredMemory->releaseAny();
    }
    nap(kLongestNap);
    if (monotonicNanoseconds() < limit && deferredMemory->isSomeoneWaking()) {
      do {
        yield();
      } while (monotonicNanoseconds() < limit && deferredMemory->isSomeoneWaking());
      nap(kLongestNap); // who has woken reads what it waited for
    }
  }
  try {
    deferredMemory->complete();
  } catch (const Error &error) {
    fail(error.what());
  }
}

void Lane::suspend(State newState) {
  state = newState;
  fiber->suspend();
}

std::int64_t Lane::waitForWords(const WordWait &newWait) {
  wait = newWait;
  loop = nullptr;
  if (!advance() && !advancePolling()) {
    suspend(State::WaitsForWords);
  }
  return wait.seen;
}

/// An answer from a rank on another core comes sooner than the engine would have put the program
/// away and taken it up again. Every now and then it gets the program nevertheless: its thread may
/// have been wanted elsewhere meanwhile. In the strict mode, others take their turns all the time.
/// Without relax(), which takes as long as the answer.
bool Lane::advancePolling() noexcept {
  constexpr int kPolls = 1024; // one or two microseconds
  constexpr std::int32_t kMostInARow = 256;
  if (!isAlone || deferredMemory || polledWaits >= kMostInARow) {
    polledWaits = 0;
    return false;
  }
  for (int poll = 0; poll < kPolls; ++poll) {
    if (advance()) {
      ++polledWaits;
      return true;
    }
  }
  polledWaits = 0;
  return false;
}

bool Lane::advance() noexcept {
  while (wait.index < wait.count) {
    const std::int64_t has = loadWord(wait.address, wait.width);
    if (!holds(wait.compare, has, wait.wanted)) {
      return false;
    }
    wait.seen = has;
    trace.saw(wait.address, has);
    ++wait.index;
    wait.address += static_cast<std::uint64_t>(wait.stride);
    wait.offset += wait.stride;
    listAgain();
  }
  return true;
}

void Lane::waitForBarrier() {
  loop = nullptr;
  suspend(State::ArrivesAtBarrier);
}

void Lane::yield() {
  // A few looks at memory take less: who needs more computes something between them.
  constexpr std::chrono::microseconds kLooking{20};
  const Clock::time_point now = Clock::now();
  const bool isComputing = turnBegan != Clock::time_point{} && now - turnBegan > kLooking;
  if (isComputing) {
    loop = nullptr;
  }
  suspend(isComputing ? State::Ready : State::Yielded);
  turnBegan = Clock::now();
}

void Lane::spin(const tdist_loc *newLoop) {
  if (loop != newLoop) {
    loop = newLoop;
    spinsSince = monotonicNanoseconds();
    listAgain();
  }
  yield();
}

void Lane::takeTurns() {
  // Longer than it takes to fill a core's caches with the tiles of another program.
  constexpr std::chrono::milliseconds kTurn{2};
  const Clock::time_point now = Clock::now();
  if (turnBegan == Clock::time_point{}) {
    turnBegan = now;
  } else if (now - turnBegan > kTurn) {
    suspend(State::Ready);
    turnBegan = Clock::now();
  }
}

void Lane::fail(std::string reason) noexcept { why = std::move(reason); }

Job *Lane::launchJob() const noexcept { return launch.job(); }

Job &Lane::job() const {
  Job *const job = launch.job();
  if (job == nullptr) {
    throwNotInitialised(primitive);
  }
  return *job;
}

Author Lane::author() {
  // Locations are constants of the kernel, which outlives its launch.
  KnownPlace &known = knownPlaces[addressOf(location) / sizeof(tdist_loc) % knownPlaces.size()];
  if (location == nullptr || known.location != location) {
    const bool hasFile = location != nullptr && location->file != nullptr;
    known = {location,
             job().places().numberOf(primitive, launch.kernelName(), hasFile ? location->file : "",
                                     hasFile ? location->line : 0)};
  }
  return {.rank = job().rank(), .place = known.number, .program = pid, .isHost = false};
}

void Lane::list() {
  const bool isSpin = isInLoop() && launch.job() != nullptr;
  const bool isBlocked = state == State::WaitsForWords || state == State::WaitsForBarrier;
  if (!(isBlocked || isSpin) || (isListed && isListingCurrent)) {
    return;
  }
  if (!isListed) {
    waitsSince = monotonicNanoseconds();
    slot = launch.job()->waits().acquire();
    isListed = true;
  }
  isListingCurrent = true;
  if (slot == nullptr) {
    return;
  }
  tdist_wait_record record{};
  record.since_ns = isSpin ? spinsSince : waitsSince;
  record.queued = launch.queued();
  std::ranges::copy(pid, record.program);
  copyText(record.primitive, isSpin ? "loop" : primitive);
  copyText(record.kernel, launch.kernelName());
  if (const tdist_loc *place = isSpin ? loop : location;
      place != nullptr && place->file != nullptr) {
    copyText(record.file, place->file);
    record.line = place->line;
  }
  if (isSpin) {
    record.kind = TDIST_WAIT_LOOP;
    record.offset = -1;
  } else if (state == State::WaitsForWords) {
    record.kind = TDIST_WAIT_WORD;
    record.address = wait.address;
    record.offset = wait.offset;
    record.width = wait.width;
    record.compare = static_cast<std::int32_t>(wait.compare);
    record.index = wait.index;
    record.count = wait.count;
    record.wanted = wait.wanted;
    launch.describeObject(record);
  } else {
    launch.describeBarrier(record);
  }
  slot->write(record);
}

void Lane::unlist() noexcept {
  if (isListed) {
    launch.job()->waits().release(slot);
    slot = nullptr;
    isListed = false;
  }
}

std::string Lane::place() const {
  std::string text = concat("; kernel ", launch.kernelName(), ", program (", pid[0], ",", pid[1],
                            ",", pid[2], ")");
  if (location != nullptr && location->file != nullptr && *location->file != '\0') {
    text += concat(", ", location->file, ":", location->line);
  }
  if (const Job *job = launch.job()) {
    text += concat(", rank ", job->rank());
  }
  return text;
}

} // namespace tdist::sim
