// The interface for host code, as far as it is about launches and streams. See the header for what
// each function does.

#include "address.h"
#include "compare.h"
#include "engine.h"
#include "error.h"
#include "tdist_sim.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tdist::sim {
namespace {

constexpr int kDone = 0;
constexpr int kNotYet = 1;
constexpr int kFailed = -1;

template <class Body> int done(const Body &body) noexcept {
  return guarded(kFailed, [&] {
    body();
    return kDone;
  });
}

template <class Wait> int waited(const Wait &wait) noexcept {
  return guarded(kFailed, [&] { return wait() ? kDone : kNotYet; });
}

/// What a mark's handle points to. The stream has the mark too.
using Handle = std::shared_ptr<Mark>;

const Mark &markOf(const void *handle) {
  if (handle == nullptr) {
    throw Error("there is no mark");
  }
  return **static_cast<const Handle *>(handle);
}

void appendStep(std::int64_t stream, const std::shared_ptr<Job> &job, Step::Ready ready,
                Step::Action action, std::vector<MemoryRange> given = {},
                const tdist_wait_record &wait = {}) {
  Engine::instance().append(
      stream, std::make_shared<Step>(std::move(ready), std::move(action), std::move(given), wait),
      job);
}

} // namespace
} // namespace tdist::sim

using namespace tdist::sim;

int tdist_rt_configure(std::int32_t aic, std::int32_t aiv, std::int32_t workers) {
  return done([&] { Engine::instance().configure({.aic = aic, .aiv = aiv}, workers); });
}

std::int64_t tdist_rt_launch(const tdist_launch *launch) {
  return guarded(std::int64_t{kFailed}, [&] {
    if (launch == nullptr) {
      throw Error("there is no launch");
    }
    tdist_launch description = *launch;
    if (description.args == nullptr) {
      description.args = reinterpret_cast<const std::uint64_t *>(launch + 1);
    }
    return Engine::instance().launch(currentJob(), description).number;
  });
}

std::int64_t tdist_rt_stream_end(std::int64_t stream) {
  return guarded(std::int64_t{kFailed}, [&] { return Engine::instance().end(stream).number; });
}

int tdist_rt_stream_reached(std::int64_t stream, std::int64_t position) {
  return guarded(kFailed, [&] { return Engine::instance().isReached({stream, position}) ? 1 : 0; });
}

int tdist_rt_stream_wait(std::int64_t stream, std::int64_t position, std::int64_t slice_ns) {
  return waited(
      [&] { return Engine::instance().waitFor({stream, position}, deadlineAfter(slice_ns)); });
}

int tdist_rt_stream_wait_for(std::int64_t stream, std::int64_t other, std::int64_t position) {
  return done([&] {
    Engine &engine = Engine::instance();
    if (position > engine.end(other).number) {
      throw Error(concat("stream ", stream, " cannot wait for position ", position, " of stream ",
                         other, ", which has been given less"));
    }
    engine.append(stream, std::make_shared<PositionWait>(StreamPosition{other, position}), nullptr);
  });
}

int tdist_rt_synchronize(std::int64_t slice_ns) {
  return waited([&] { return Engine::instance().waitForAll(deadlineAfter(slice_ns)); });
}

std::int64_t tdist_rt_unfinished(void) {
  const Engine &engine = Engine::instance();
  return engine.hasFailure() ? -1 : engine.unfinished();
}

std::int64_t tdist_rt_blocked_ns(void) {
  return guarded(std::int64_t{0}, [] { return Engine::instance().blockedNanoseconds(); });
}

int tdist_rt_memory_in_use(const void *addr, std::int64_t bytes) {
  return guarded(kFailed,
                 [&] { return Engine::instance().isInUse({addressOf(addr), bytes}) ? 1 : 0; });
}

int tdist_rt_memory_wait(std::int64_t stream, const tdist_range *ranges, std::int32_t count,
                         std::int64_t slice_ns) {
  return waited([&] {
    std::vector<MemoryRange> wanted;
    for (const tdist_range &range : std::span(ranges, static_cast<std::size_t>(count))) {
      wanted.push_back({addressOf(range.address), range.bytes});
    }
    return Engine::instance().waitForMemory(stream, wanted, deadlineAfter(slice_ns));
  });
}

void *tdist_rt_mark(std::int64_t stream) {
  return guarded(static_cast<void *>(nullptr), [&]() -> void * {
    auto mark = std::make_unique<Handle>(std::make_shared<Mark>());
    Engine::instance().append(stream, *mark, nullptr);
    return mark.release();
  });
}

std::int64_t tdist_rt_mark_ns(const void *mark) {
  return guarded(std::int64_t{kFailed}, [&] { return Engine::instance().reachedAt(markOf(mark)); });
}

int tdist_rt_mark_wait(const void *mark, std::int64_t slice_ns) {
  return waited(
      [&] { return Engine::instance().waitFor(markOf(mark).position, deadlineAfter(slice_ns)); });
}

int tdist_rt_stream_wait_mark(std::int64_t stream, const void *mark) {
  return done([&] {
    Engine::instance().append(stream, std::make_shared<PositionWait>(markOf(mark).position),
                              nullptr);
  });
}

void tdist_rt_mark_free(void *mark) { delete static_cast<Handle *>(mark); }

int tdist_rt_give_up(std::int64_t slice_ns) {
  return waited([&] { return Engine::instance().giveUp(deadlineAfter(slice_ns)); });
}

int tdist_rt_stop(std::int64_t slice_ns) {
  return waited([&] { return Engine::instance().stop(deadlineAfter(slice_ns)); });
}

int tdist_rt_host_state(std::int32_t state) {
  return guarded(kFailed, [&]() -> int {
    if (state < TDIST_HOST_RUNS || state > TDIST_HOST_EXITED) {
      throw Error(concat("a host's state ", state, " does not exist: expected 0 to 4"));
    }
    const std::shared_ptr<Job> job = currentJob();
    return job ? job->publishHost(static_cast<tdist_host_state>(state)) : TDIST_HOST_RUNS;
  });
}

int tdist_rt_put_on_stream(void *dst, const void *src, std::int64_t bytes, std::int32_t pe,
                           std::int64_t stream) {
  return done([&] {
    constexpr const char *kWhat = "put on a stream";
    const std::shared_ptr<Job> job = requireJob(kWhat);
    (void)job->checkCopy(kWhat, addressOf(dst), addressOf(src), bytes, pe);
    appendStep(stream, job, {}, [=] { job->put(kWhat, addressOf(dst), addressOf(src), bytes, pe); },
               {{addressOf(dst), bytes}, {addressOf(src), bytes}});
  });
}

int tdist_rt_get_on_stream(void *dst, const void *src, std::int64_t bytes, std::int32_t pe,
                           std::int64_t stream) {
  return done([&] {
    constexpr const char *kWhat = "get on a stream";
    const std::shared_ptr<Job> job = requireJob(kWhat);
    (void)job->checkCopy(kWhat, addressOf(src), addressOf(dst), bytes, pe);
    appendStep(stream, job, {}, [=] { job->get(kWhat, addressOf(dst), addressOf(src), bytes, pe); },
               {{addressOf(dst), bytes}, {addressOf(src), bytes}});
  });
}

int tdist_rt_signal_on_stream(void *sig, std::int32_t bytes, std::int64_t value, std::int32_t op,
                              std::int32_t pe, std::int64_t stream) {
  return done([&] {
    constexpr const char *kWhat = "signal on a stream";
    const std::shared_ptr<Job> job = requireJob(kWhat);
    if (bytes != sizeof(std::int32_t) && bytes != sizeof(std::int64_t)) {
      throw Error(concat(kWhat, ": a word of ", bytes, " bytes: expected 4 or 8"));
    }
    if (op != 0 && op != 1) {
      throw Error(
          concat(kWhat, ": operation ", op, " does not exist: expected 0 (set) or 1 (add)"));
    }
    const std::uint64_t address = addressOf(sig);
    (void)job->checkTarget(kWhat, address, bytes, pe, bytes);
    const SignalOp operation = op == 0 ? SignalOp::Set : SignalOp::Add;
    const Author author{.rank = job->rank(),
                        .place = job->places().numberOf(kWhat, "", "", 0),
                        .program = {},
                        .isHost = true};
    appendStep(stream, job, {},
               [=] {
                 if (bytes == sizeof(std::int32_t)) {
                   job->signal(kWhat, address, static_cast<std::int32_t>(value), operation, pe,
                               author);
                 } else {
                   job->signal(kWhat, address, value, operation, pe, author);
                 }
               },
               {{address, bytes}});
  });
}

int tdist_rt_wait_until_on_stream(const void *addr, std::int32_t bytes, std::int32_t cmp,
                                  std::int64_t value, std::int64_t stream) {
  return done([&] {
    constexpr const char *kWhat = "wait_until on a stream";
    const std::shared_ptr<Job> job = requireJob(kWhat);
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
      throw Error(concat(kWhat, ": a word of ", bytes, " bytes: expected 1, 2, 4 or 8"));
    }
    if (cmp < 0 || cmp >= kCompares) {
      throw Error(
          concat(kWhat, ": comparison ", cmp, " does not exist: expected 0 to ", kCompares - 1));
    }
    const std::uint64_t address = addressOf(addr);
    const auto compare = static_cast<Compare>(cmp);
    tdist_wait_record record{};
    record.kind = TDIST_WAIT_WORD;
    record.by_host = 1;
    record.address = address;
    record.offset = job->checkSymmetric(kWhat, address, bytes, bytes);
    record.width = bytes;
    record.compare = cmp;
    record.count = 1;
    record.wanted = value;
    copyText(record.primitive, kWhat);
    appendStep(
        stream, job, [=] { return holds(compare, loadWord(address, bytes), value); }, {},
        {{address, bytes}}, record);
  });
}
