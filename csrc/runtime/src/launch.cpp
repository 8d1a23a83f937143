#include "launch.h"

#include "error.h"
#include "wait_table.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tdist::sim {
namespace {

// Relaxed: a number of its own for each.
std::atomic<std::uint64_t> launches = 0;

std::int64_t checkedPrograms(const std::string &kernel, const std::int32_t (&grid)[3]) {
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

Cores checkedCores(const std::string &kernel, const Cores &needed, const Cores &all) {
  if (needed.aic < 0 || needed.aiv < 0 || needed.aic + needed.aiv == 0) {
    throw Error(concat("kernel ", kernel, ": a program on ", needed.aic, " cube and ", needed.aiv,
                       " vector cores cannot be"));
  }
  if (!all.hasRoomFor(needed)) {
    throw Error(concat("kernel ", kernel, ": a program takes ", needed.aic, " cube and ",
                       needed.aiv, " vector cores, and the simulated NPU has ", all.aic, " and ",
                       all.aiv, ": raise TRITON_DIST_SIM_AIC and TRITON_DIST_SIM_AIV"));
  }
  return needed;
}

TracedProgram::Launch tracedLaunch(const tdist_launch &description) {
  std::shared_ptr<Trace> trace = Trace::current();
  if (!trace) {
    return {};
  }
  const std::int64_t number = trace->nextLaunch();
  return {std::move(trace), number, description.stream, description.aic > 0};
}

std::string nameOf(const tdist_launch &description) {
  return description.kernel_name != nullptr ? description.kernel_name : "(no name)";
}

} // namespace

Launch::Launch(std::shared_ptr<Job> job, const tdist_launch &description, const Cores &all)
    : Work(Kind::Launch), ownJob(std::move(job)),
      ownSerial(launches.fetch_add(1, std::memory_order_relaxed)), function(description.function),
      name(nameOf(description)), file(description.file), line(description.line),
      grid{description.grid[0], description.grid[1], description.grid[2]},
      cores(checkedCores(name, {description.aic, description.aiv}, all)),
      trace(tracedLaunch(description)),
      arguments(description.args,
                description.args + static_cast<std::size_t>(std::max(description.n_args, 0))),
      argumentNames(description.arg_names), programs(checkedPrograms(name, description.grid)),
      mostInFlight(all.countOf(cores)) {
  if (function == nullptr || description.n_args < 0) {
    throw Error(concat("kernel ", name, ": launched without a function or arguments"));
  }
}

bool Launch::isGiven(const MemoryRange &range) const {
  if (hasEnded()) {
    return false;
  }
  const auto isIn = [](std::uint64_t address, std::uint64_t begin, std::int64_t bytes) {
    return address - begin < static_cast<std::uint64_t>(bytes);
  };
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  const bool isSymmetric =
      ownJob && ownJob->findSymmetric(range.address, range.bytes, begin, bytes);
  return std::ranges::any_of(arguments, [&](std::uint64_t argument) {
    if (isIn(argument, range.address, range.bytes)) {
      return true;
    }
    if (!isSymmetric) {
      return false;
    }
    std::int64_t offset = 0;
    std::int64_t extent = 0;
    // An address that belongs to no allocation stands for the whole heap, reached by offsets.
    return ownJob->findSymmetric(argument, 1, offset, extent) && offset < begin + bytes &&
           begin < offset + extent;
  });
}

std::string Launch::place() const {
  return file != nullptr && *file != '\0' ? concat("; launched at ", file, ":", line) : "";
}

void Launch::call(const Lane::Program &program) const {
  function(arguments.data(), grid.data(), program.data());
}

Lane &Launch::startNext() {
  if (idleLanes.empty()) {
    idleLanes.push_back(lanes.emplace_back(std::make_unique<Lane>(*this)).get());
  }
  Lane &lane = *idleLanes.back();
  idleLanes.pop_back();
  const std::int64_t row = started / grid[0];
  lane.assign({static_cast<std::int32_t>(started % grid[0]),
               static_cast<std::int32_t>(row % grid[1]), static_cast<std::int32_t>(row / grid[1])});
  ++started;
  return lane;
}

void Launch::noteEnd(Lane &lane) {
  idleLanes.push_back(&lane);
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
  fail(**waiting, whyNoBarrier(**waiting));
}

void Launch::tellEnd() const noexcept {
  if (ownJob) {
    tdist_wait_record record{};
    record.since_ns = monotonicNanoseconds();
    copyText(record.kernel, name);
    ownJob->control(ownJob->rank()).finished.write(record);
  }
}

std::string Launch::whyNoBarrier(const Lane &lane) const {
  if (lane.launchJob() == nullptr) {
    return notInitialisedText(lane.calls());
  }
  if (programs > mostInFlight) {
    return concat(lane.calls(), " can never be passed: it waits for all ", programs,
                  " programs of the launch, of which only ", mostInFlight,
                  " run at a time; launch at most ", mostInFlight);
  }
  if (ended > 0) {
    const auto &[x, y, z] = endedFirst;
    return concat(lane.calls(), " can never be passed: program (", x, ",", y, ",", z,
                  ") of the same launch has ended without reaching it");
  }
  return "";
}

void Launch::arriveAtBarrier(Lane &lane) {
  if (const std::string reason = whyNoBarrier(lane); !reason.empty()) {
    fail(lane, reason);
    return;
  }
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

void Launch::describeObject(tdist_wait_record &record) const {
  if (argumentNames == nullptr || !ownJob) {
    return;
  }
  const std::optional<Heap::Allocation> allocation = ownJob->heap().find(record.offset, 1);
  if (!allocation) {
    return;
  }
  const std::uint64_t begin =
      record.address - static_cast<std::uint64_t>(record.offset - allocation->offset);
  std::uint64_t closest = 0;
  std::string_view names = argumentNames;
  for (const std::uint64_t argument : arguments) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (argument >= begin && argument <= record.address && argument >= closest) {
      closest = argument;
      copyText(record.object, name);
      record.object_offset = static_cast<std::int64_t>(record.address - argument);
    }
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

void Launch::fail(const Lane &lane, const std::string &reason) {
  if (why.empty()) {
    why = reason + lane.place() + place();
  }
}

} // namespace tdist::sim
