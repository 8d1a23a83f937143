// What compiled kernels call. Every function checks its operands, and none returns when it fails.
//
// While a program is suspended its stack may be given up without destructors, so what is alive
// across a wait is trivial: operands, pointers, a WordWait.

#include "address.h"
#include "compare.h"
#include "deferred_memory.h"
#include "error.h"
#include "job.h"
#include "lane.h"
#include "tdist_sim.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <sched.h>
#include <string>

namespace tdist::sim {
namespace {

constexpr std::int32_t kSignalStride = 64; // bytes between the words of one wait

Lane &laneFor(const char *primitive) {
  Lane *lane = Lane::current();
  if (lane == nullptr) {
    std::fprintf(stderr, "triton_dist: %s was called outside of a kernel launch\n", primitive);
    std::abort();
  }
  return *lane;
}

/// Whether the body ran through; else the program has failed. Nothing is alive when it returns.
template <class Body> bool attempt(Lane &lane, const Body &body) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception &error) {
    lane.fail(error.what());
  } catch (...) {
    lane.fail("the runtime failed in a way it does not know");
  }
  return false;
}

/// Runs a device function's body for the program that calls it.
template <class Result, class Body>
Result onDevice(const char *primitive, const tdist_loc *location, const Body &body) {
  Lane &lane = laneFor(primitive);
  lane.enter(primitive, location);
  lane.pause();
  Result result{};
  if (!attempt(lane, [&] { result = body(lane); })) {
    lane.leave();
  }
  return result;
}

/// The same for a call that takes time, or tells others something: it is in the trace.
template <class Result, class Body>
Result onDeviceTraced(const char *primitive, const tdist_loc *location, const Body &body) {
  return onDevice<Result>(primitive, location, [&](Lane &lane) {
    lane.traced().beginCall(primitive, location);
    const Result result = body(lane);
    lane.traced().endCall();
    return result;
  });
}

std::int32_t checkedAxis(const Lane &lane, std::int32_t axis) {
  if (axis != -1 && axis != 0) {
    throw Error(concat(lane.calls(), ": axis ", axis, " does not exist: expected -1 or 0"));
  }
  return axis;
}

std::int32_t checkedTeam(const Lane &lane, std::int32_t team) {
  if (team != 0) {
    throw Error(concat(lane.calls(), ": team ", team,
                       " does not exist: simulated NPUs have team 0 only, all PEs"));
  }
  return team;
}

SignalOp checkedOp(const Lane &lane, std::int32_t op, std::int32_t set, std::int32_t add) {
  if (op == set) {
    return SignalOp::Set;
  }
  if (op == add) {
    return SignalOp::Add;
  }
  throw Error(concat(lane.calls(), ": signal operation ", op, " does not exist: expected ", set,
                     " (set) or ", add, " (add)"));
}

/// Triton's dialect counts from 1, the shmem library from 0.
SignalOp checkedNotifyOp(const Lane &lane, std::int32_t op) { return checkedOp(lane, op, 1, 2); }
SignalOp checkedSignalOp(const Lane &lane, std::int32_t op) { return checkedOp(lane, op, 0, 1); }

std::uint64_t asAddress(std::int64_t operand) { return static_cast<std::uint64_t>(operand); }

/// Before a signal: earlier stores are visible to who sees it.
void release(Lane &lane) {
  if (auto &memory = lane.deferred()) {
    memory->release();
  }
}

/// At quiet, fence and barriers: earlier copies are, too.
void complete(Lane &lane) {
  if (auto &memory = lane.deferred()) {
    memory->complete();
  }
}

template <class Word>
std::int32_t notify(std::int64_t address, std::int32_t pe, Word value, std::int32_t op,
                    const tdist_loc *location) {
  return onDeviceTraced<std::int32_t>("notify", location, [&](Lane &lane) {
    release(lane);
    const SignalOp operation = checkedNotifyOp(lane, op);
    lane.traced().signals(asAddress(address), pe, value, static_cast<std::int32_t>(operation));
    lane.job().signal(lane.calls(), asAddress(address), value, operation, pe, lane.author());
    return 0;
  });
}

template <class Word>
std::int32_t wait(std::int64_t address, std::int32_t count, Word value, const tdist_loc *location) {
  return onDeviceTraced<std::int32_t>("wait", location, [&](Lane &lane) {
    Job &job = lane.job();
    if (count < 0) {
      throw Error(concat("wait: numBarriers is ", count, ": expected 0 or more"));
    }
    if (count == 0) {
      return 0;
    }
    constexpr std::int64_t kWidth = sizeof(Word);
    const std::int64_t extent = std::int64_t{count - 1} * kSignalStride + kWidth;
    const std::int64_t offset = job.checkSymmetric("wait", asAddress(address), extent, kWidth);
    lane.waitForWords({.address = asAddress(address),
                       .offset = offset,
                       .width = kWidth,
                       .stride = kSignalStride,
                       .index = 0,
                       .count = count,
                       .compare = Compare::Eq,
                       .wanted = value,
                       .seen = 0});
    return 0;
  });
}

std::int32_t barrier(const char *primitive, const tdist_loc *location) {
  return onDeviceTraced<std::int32_t>(primitive, location, [](Lane &lane) {
    complete(lane);
    lane.waitForBarrier();
    return 0;
  });
}

/// Copies are complete when they return, unless the strict mode has kept them; what is left is
/// their order. Seq_cst: also against plain stores and loads on both sides, which kernels use as
/// signals too.
std::int32_t order(const char *primitive, const tdist_loc *location) {
  return onDeviceTraced<std::int32_t>(primitive, location, [](Lane &lane) {
    (void)lane.job();
    complete(lane);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return 0;
  });
}

enum class Completes { AtOnce, Later };

std::int32_t put(const char *primitive, std::int64_t dst, std::int64_t src, std::int32_t bytes,
                 std::int32_t pe, const tdist_loc *location, Completes completes) {
  return onDeviceTraced<std::int32_t>(primitive, location, [&](Lane &lane) {
    lane.traced().moves(asAddress(dst), pe, bytes);
    if (std::optional<DeferredMemory> &memory = lane.deferred(); !memory) {
      lane.job().put(primitive, asAddress(dst), asAddress(src), bytes, pe);
    } else if (completes == Completes::AtOnce) {
      memory->put(primitive, asAddress(dst), asAddress(src), bytes, pe);
    } else {
      memory->putLater(primitive, asAddress(dst), asAddress(src), bytes, pe);
    }
    return 0;
  });
}

std::int32_t get(const char *primitive, std::int64_t dst, std::int64_t src, std::int32_t bytes,
                 std::int32_t pe, const tdist_loc *location, Completes completes) {
  return onDeviceTraced<std::int32_t>(primitive, location, [&](Lane &lane) {
    lane.traced().moves(asAddress(src), pe, bytes);
    if (std::optional<DeferredMemory> &memory = lane.deferred(); !memory) {
      lane.job().get(primitive, asAddress(dst), asAddress(src), bytes, pe);
    } else if (completes == Completes::AtOnce) {
      memory->get(primitive, asAddress(dst), asAddress(src), bytes, pe);
    } else {
      memory->getLater(primitive, asAddress(dst), asAddress(src), bytes, pe);
    }
    return 0;
  });
}

std::int32_t putSignal(const char *primitive, std::int64_t dst, std::int64_t src,
                       std::int32_t bytes, std::int64_t sig, std::int32_t signal, std::int32_t op,
                       std::int32_t pe, const tdist_loc *location, Completes completes) {
  return onDeviceTraced<std::int32_t>(primitive, location, [&](Lane &lane) {
    Job &job = lane.job();
    const SignalOp operation = checkedSignalOp(lane, op);
    // Before the copy: a call that is wrong must not have done half of its work.
    (void)job.checkTarget(primitive, asAddress(sig), sizeof signal, pe, sizeof signal);
    lane.traced().moves(asAddress(dst), pe, bytes);
    lane.traced().signals(asAddress(sig), pe, signal, op);
    if (lane.deferred() && completes == Completes::Later) {
      lane.deferred()->putLater(primitive, asAddress(dst), asAddress(src), bytes, pe,
                                DeferredMemory::Signal{.address = asAddress(sig),
                                                       .value = signal,
                                                       .op = operation,
                                                       .author = lane.author()});
      return 0;
    }
    release(lane);
    job.put(primitive, asAddress(dst), asAddress(src), bytes, pe);
    job.signal(primitive, asAddress(sig), signal, operation, pe, lane.author());
    return 0;
  });
}

/// A plain load or store of a kernel that was compiled for the strict mode.
template <class Body>
void access(const char *what, const tdist_loc *location, void *target, const void *source,
            std::int64_t bytes, const Body &body) {
  Lane *const lane = Lane::current();
  if (lane == nullptr || !lane->deferred()) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    return;
  }
  lane->enter(what, location);
  if (!attempt(*lane, [&] { body(*lane->deferred()); })) {
    lane->leave();
  }
}

} // namespace
} // namespace tdist::sim

using namespace tdist::sim;

std::int32_t tdist_sim_my_pe(std::int32_t axis, const tdist_loc *loc) {
  return onDevice<std::int32_t>("rank", loc, [&](Lane &lane) {
    checkedAxis(lane, axis);
    return lane.job().rank();
  });
}

std::int32_t tdist_sim_n_pes(std::int32_t axis, const tdist_loc *loc) {
  return onDevice<std::int32_t>("num_ranks", loc, [&](Lane &lane) {
    checkedAxis(lane, axis);
    return lane.job().worldSize();
  });
}

std::int32_t tdist_sim_team_my_pe(std::int32_t team, const tdist_loc *loc) {
  return onDevice<std::int32_t>("team_my_pe", loc, [&](Lane &lane) {
    checkedTeam(lane, team);
    return lane.job().rank();
  });
}

std::int32_t tdist_sim_team_n_pes(std::int32_t team, const tdist_loc *loc) {
  return onDevice<std::int32_t>("team_n_pes", loc, [&](Lane &lane) {
    checkedTeam(lane, team);
    return lane.job().worldSize();
  });
}

std::int64_t tdist_sim_delta(std::int64_t addr, std::int32_t pe, std::int32_t elem_bytes,
                             const tdist_loc *loc) {
  return onDevice<std::int64_t>("symm_at", loc, [&](Lane &lane) {
    const Job &job = lane.job();
    job.checkPe("symm_at", pe);
    if (elem_bytes <= 0 || job.distance(pe) % elem_bytes != 0) {
      throw Error(concat("symm_at: elements of ", elem_bytes, " bytes cannot be"));
    }
    (void)job.checkTarget("symm_at", asAddress(addr), elem_bytes, pe);
    return job.distance(pe) / elem_bytes;
  });
}

std::int32_t tdist_sim_notify_i32(std::int64_t addr, std::int32_t pe, std::int32_t value,
                                  std::int32_t op, std::int32_t /*scope*/, const tdist_loc *loc) {
  return notify(addr, pe, value, op, loc);
}

std::int32_t tdist_sim_notify_i64(std::int64_t addr, std::int32_t pe, std::int64_t value,
                                  std::int32_t op, std::int32_t /*scope*/, const tdist_loc *loc) {
  return notify(addr, pe, value, op, loc);
}

std::int32_t tdist_sim_wait_i32(std::int64_t addr, std::int32_t count, std::int32_t value,
                                std::int32_t /*scope*/, std::int32_t /*semantic*/,
                                const tdist_loc *loc) {
  return wait(addr, count, value, loc);
}

std::int32_t tdist_sim_wait_i64(std::int64_t addr, std::int32_t count, std::int64_t value,
                                std::int32_t /*scope*/, std::int32_t /*semantic*/,
                                const tdist_loc *loc) {
  return wait(addr, count, value, loc);
}

std::int32_t tdist_sim_barrier_all(std::int32_t /*zero*/, const tdist_loc *loc) {
  return barrier("barrier_all", loc);
}

std::int32_t tdist_sim_barrier_all_vec(std::int32_t /*zero*/, const tdist_loc *loc) {
  return barrier("barrier_all_vec", loc);
}

std::int32_t tdist_sim_quiet(std::int32_t /*zero*/, const tdist_loc *loc) {
  return order("quiet", loc);
}

std::int32_t tdist_sim_fence(std::int32_t /*zero*/, const tdist_loc *loc) {
  return order("fence", loc);
}

std::int32_t tdist_sim_putmem(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                              std::int32_t pe, const tdist_loc *loc) {
  return put("putmem", dst, src, bytes, pe, loc, Completes::AtOnce);
}

std::int32_t tdist_sim_putmem_nbi(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                                  std::int32_t pe, const tdist_loc *loc) {
  return put("putmem_nbi", dst, src, bytes, pe, loc, Completes::Later);
}

std::int32_t tdist_sim_getmem(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                              std::int32_t pe, const tdist_loc *loc) {
  return get("getmem", dst, src, bytes, pe, loc, Completes::AtOnce);
}

std::int32_t tdist_sim_getmem_nbi(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                                  std::int32_t pe, const tdist_loc *loc) {
  return get("getmem_nbi", dst, src, bytes, pe, loc, Completes::Later);
}

std::int32_t tdist_sim_putmem_signal(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                                     std::int64_t sig, std::int32_t signal, std::int32_t op,
                                     std::int32_t pe, const tdist_loc *loc) {
  return putSignal("putmem_signal", dst, src, bytes, sig, signal, op, pe, loc, Completes::AtOnce);
}

std::int32_t tdist_sim_putmem_signal_nbi(std::int64_t dst, std::int64_t src, std::int32_t bytes,
                                         std::int64_t sig, std::int32_t signal, std::int32_t op,
                                         std::int32_t pe, const tdist_loc *loc) {
  return putSignal("putmem_signal_nbi", dst, src, bytes, sig, signal, op, pe, loc,
                   Completes::Later);
}

std::int32_t tdist_sim_signal_op(std::int64_t sig, std::int32_t signal, std::int32_t op,
                                 std::int32_t pe, const tdist_loc *loc) {
  return onDeviceTraced<std::int32_t>("signal_op", loc, [&](Lane &lane) {
    release(lane);
    lane.traced().signals(asAddress(sig), pe, signal, op);
    lane.job().signal("signal_op", asAddress(sig), signal, checkedSignalOp(lane, op), pe,
                      lane.author());
    return 0;
  });
}

std::int32_t tdist_sim_signal_wait_until(std::int64_t sig, std::int32_t cmp, std::int32_t value,
                                         const tdist_loc *loc) {
  return onDeviceTraced<std::int32_t>("signal_wait_until", loc, [&](Lane &lane) {
    constexpr std::int32_t kWidth = sizeof value;
    const Job &job = lane.job();
    if (cmp < 0 || cmp >= kCompares) {
      throw Error(concat("signal_wait_until: comparison ", cmp, " does not exist: expected 0 to ",
                         kCompares - 1));
    }
    const std::int64_t offset =
        job.checkSymmetric("signal_wait_until", asAddress(sig), kWidth, kWidth);
    return static_cast<std::int32_t>(lane.waitForWords({.address = asAddress(sig),
                                                        .offset = offset,
                                                        .width = kWidth,
                                                        .stride = kWidth,
                                                        .index = 0,
                                                        .count = 1,
                                                        .compare = static_cast<Compare>(cmp),
                                                        .wanted = value,
                                                        .seen = 0}));
  });
}

std::int32_t tdist_sim_int_p(std::int64_t dst, std::int32_t value, std::int32_t pe,
                             const tdist_loc *loc) {
  return onDeviceTraced<std::int32_t>("int_p", loc, [&](Lane &lane) {
    release(lane);
    lane.traced().signals(asAddress(dst), pe, value, 0);
    lane.job().signal("int_p", asAddress(dst), value, SignalOp::Set, pe, lane.author());
    return 0;
  });
}

std::int32_t tdist_sim_assert_failed(std::int64_t text, const tdist_loc *loc) {
  return onDeviceTraced<std::int32_t>("device_assert", loc, [&](const Lane &) -> std::int32_t {
    throw Error(concat("device_assert failed: ", reinterpret_cast<const char *>(text)));
  });
}

void tdist_sim_load(const void *address, void *target, std::int64_t bytes, const tdist_loc *loc) {
  access("load", loc, target, address, bytes,
         [&](DeferredMemory &memory) { memory.load(addressOf(address), target, bytes); });
}

void tdist_sim_store(void *address, const void *source, std::int64_t bytes, const tdist_loc *loc) {
  access("store", loc, address, source, bytes,
         [&](DeferredMemory &memory) { memory.store(addressOf(address), source, bytes); });
}

void tdist_sim_release(const tdist_loc * /*loc*/) {
  if (Lane *lane = Lane::current()) {
    release(*lane);
  }
}

void *tdist_sim_alloc(std::int64_t align, std::int64_t bytes) {
  Lane &lane = laneFor("local memory");
  void *memory = nullptr;
  if (!attempt(lane, [&] { memory = lane.memory().allocate(align, bytes); })) {
    lane.leave();
  }
  return memory;
}

void tdist_sim_free(void *memory) { laneFor("local memory").memory().release(memory); }

void tdist_sim_yield(const tdist_loc *loc) {
  if (Lane *lane = Lane::current()) {
    lane->spin(loc);
  } else {
    sched_yield();
  }
}

void tdist_sim_take_turns(void) {
  if (Lane *lane = Lane::current()) {
    lane->takeTurns();
  }
}
