// What a lane writes into the trace of its launch: its program, the program's calls, and the words
// that a wait has seen. Without a trace each of these is a test of a null pointer.
#pragma once

#include "tdist_sim.h"
#include "trace.h"

#include <array>
#include <cstdint>
#include <string>

namespace tdist::sim {

class TracedProgram {
public:
  /// What all programs of a launch have in common.
  struct Launch {
    std::shared_ptr<Trace> trace; // empty: nothing is traced
    std::int64_t number = 0;
    std::int64_t stream = 0;
    bool isCube = false;
  };

  explicit TracedProgram(const Launch &launch) noexcept
      : launch(launch), trace(launch.trace.get()) {}
  TracedProgram(const TracedProgram &) = delete;
  TracedProgram &operator=(const TracedProgram &) = delete;
  ~TracedProgram() { giveBackCore(); }

  void begin(const std::string &kernel, const std::array<std::int32_t, 3> &program) {
    if (trace != nullptr) {
      write(kernel, program);
    }
  }
  void end() noexcept {
    if (trace != nullptr) {
      finish();
    }
  }

  /// A call of the program begins; it ends with endCall(). What it moves can be said meanwhile.
  void beginCall(const char *primitive, const tdist_loc *location) {
    if (trace != nullptr) {
      writeCall(primitive, location);
    }
  }
  void endCall() noexcept {
    if (trace != nullptr) {
      finishCall();
    }
  }
  void signals(std::uint64_t address, std::int32_t pe, std::int64_t value,
               std::int32_t op) noexcept {
    if (trace != nullptr && call != nullptr) {
      call->address = address;
      call->pe = pe;
      call->value = value;
      call->op = op;
    }
  }
  void moves(std::uint64_t address, std::int32_t pe, std::int64_t bytes) noexcept {
    if (trace != nullptr && call != nullptr) {
      call->address = address;
      call->pe = pe;
      call->bytes = bytes;
    }
  }
  /// A word that the call waits for has been seen as wanted.
  void saw(std::uint64_t address, std::int64_t value) noexcept {
    if (trace != nullptr) {
      writeSeen(address, value);
    }
  }

private:
  void write(const std::string &kernel, const std::array<std::int32_t, 3> &program);
  void finish() noexcept;
  void writeCall(const char *primitive, const tdist_loc *location);
  void finishCall() noexcept;
  void writeSeen(std::uint64_t address, std::int64_t value) noexcept;
  void giveBackCore() noexcept;

  const Launch &launch;
  Trace *const trace;
  Trace::Record common{};
  Trace::Record *whole = nullptr;
  Trace::Record *call = nullptr;
  bool hasCore = false;
};

} // namespace tdist::sim
