#include "traced_program.h"

#include "wait_table.h"

namespace tdist::sim {

void TracedProgram::write(const std::string &kernel, const std::array<std::int32_t, 3> &program) {
  common = {};
  common.kernel = trace->text(kernel);
  common.program = program;
  common.stream = launch.stream;
  common.launch = launch.number;
  common.isCube = launch.isCube ? 1 : 0;
  common.core = trace->takeCore(launch.isCube);
  hasCore = true;
  common.begin = monotonicNanoseconds();
  call = nullptr;
  whole = trace->add(TDIST_TRACE_PROGRAM, common);
  common.parent = trace->numberOf(whole);
}

void TracedProgram::finish() noexcept {
  if (whole != nullptr) {
    whole->end = monotonicNanoseconds();
    whole = nullptr;
  }
  giveBackCore();
}

void TracedProgram::giveBackCore() noexcept {
  if (hasCore) {
    trace->giveBackCore(launch.isCube, common.core);
    hasCore = false;
  }
}

void TracedProgram::writeCall(const char *primitive, const tdist_loc *location) {
  Trace::Record record = common;
  record.name = trace->text(primitive);
  if (location != nullptr && location->file != nullptr) {
    record.file = trace->text(location->file);
    record.line = location->line;
  }
  record.pe = -1;
  record.begin = monotonicNanoseconds();
  call = trace->add(TDIST_TRACE_CALL, record);
}

void TracedProgram::finishCall() noexcept {
  if (call != nullptr) {
    call->end = monotonicNanoseconds();
    call = nullptr;
  }
}

void TracedProgram::writeSeen(std::uint64_t address, std::int64_t value) noexcept {
  Trace::Record record = common;
  record.parent = trace->numberOf(call);
  record.address = address;
  record.value = value;
  record.begin = monotonicNanoseconds();
  record.end = record.begin;
  trace->add(TDIST_TRACE_SEEN, record);
}

} // namespace tdist::sim
