// The interface for host code. See the header for what each function does.

#include "address.h"
#include "compare.h"
#include "deadlock.h"
#include "describe.h"
#include "engine.h"
#include "error.h"
#include "host_memory.h"
#include "idle.h"
#include "job.h"
#include "strict.h"
#include "tdist_sim.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tdist::sim {
namespace {

constexpr std::int32_t kAbiVersion = 3;
constexpr int kDone = 0;
constexpr int kNotYet = 1;
constexpr int kFailed = -1;
constexpr int kNotKnown = -2;

/// Runs `body`, which returns nothing of use.
template <class Body> int done(const Body &body) noexcept {
  return guarded(kFailed, [&] {
    body();
    return kDone;
  });
}

/// A wait's record in the table, for as long as one slice lasts.
class Listing {
public:
  explicit Listing(Job &job) : job(job) {}
  Listing(const Listing &) = delete;
  Listing &operator=(const Listing &) = delete;
  ~Listing() {
    if (isListed) {
      job.waits().release(slot);
    }
  }

  void list(const tdist_wait_record &record) noexcept {
    if (isListed) {
      return;
    }
    isListed = true;
    slot = job.waits().acquire();
    if (slot != nullptr) {
      slot->write(record);
    }
  }

private:
  Job &job;
  bool isListed = false;
  WaitSlot *slot = nullptr;
};

/// The wait that this thread is in, slice by slice. Two slices are of one wait if all else in their
/// records is the same and the first one was not the last.
tdist_wait_record &waitOfThread() noexcept {
  thread_local tdist_wait_record wait{};
  return wait;
}

/// Sets in `record` when the wait began.
void setBeginning(tdist_wait_record &record) noexcept {
  tdist_wait_record &wait = waitOfThread();
  record.since_ns = wait.since_ns;
  if (std::memcmp(&record, &wait, sizeof record) != 0) {
    record.since_ns = monotonicNanoseconds();
    wait = record;
  }
}

/// Waits for one slice.
template <class Satisfied>
int waitForSlice(Job &job, tdist_wait_record record, std::int64_t sliceNs,
                 const Satisfied &satisfied) {
  record.by_host = 1;
  IdleRule idle(&job.doorbell(), deadlineAfter(sliceNs));
  Listing listing(job);
  while (!satisfied()) {
    if (idle.isPatient()) {
      setBeginning(record);
      listing.list(record);
    }
    if (idle.step(/*isSpinning=*/false, satisfied) == IdleRule::Step::SliceOver && !satisfied()) {
      return kNotYet;
    }
  }
  waitOfThread() = {};
  return kDone;
}

template <class Length>
Length copyOut(const std::string &text, char *buffer, std::int64_t capacity) {
  const auto needed = static_cast<Length>(text.size() + 1);
  if (buffer != nullptr && needed <= capacity) {
    std::memcpy(buffer, text.c_str(), text.size() + 1);
  }
  return needed;
}

} // namespace
} // namespace tdist::sim

using namespace tdist::sim;

std::int32_t tdist_rt_abi_version(void) { return kAbiVersion; }

const char *tdist_rt_last_error(void) { return lastError(); }

std::int64_t tdist_rt_segment_bytes(std::int64_t heap_bytes) {
  return guarded(std::int64_t{kFailed}, [&] { return Segments::segmentBytes(heap_bytes); });
}

void tdist_rt_strict(std::int32_t on, std::uint64_t seed) { Strict::choose(on != 0, seed); }

std::int64_t tdist_rt_job_seed(void) {
  const std::shared_ptr<Job> job = currentJob();
  return job ? static_cast<std::int64_t>(job->control(0).strictSeed) : kFailed;
}

int tdist_rt_attach(std::int32_t rank, std::int32_t world_size, const std::int32_t *fds,
                    std::int64_t heap_bytes) {
  return done([&] {
    if (world_size < 1 || fds == nullptr) {
      throw Error(concat("a job of ", world_size, " PEs cannot be: expected at least 1"));
    }
    attachJob(rank, std::span(fds, static_cast<std::size_t>(world_size)), heap_bytes);
  });
}

int tdist_rt_detach(void) { return done(detachJob); }

void *tdist_rt_heap_base(std::int32_t pe) {
  return guarded(static_cast<void *>(nullptr), [&]() -> void * {
    const std::shared_ptr<Job> job = requireJob("heap_base");
    job->checkPe("heap_base", pe);
    return job->heapBase(pe);
  });
}

std::int64_t tdist_rt_heap_alloc(std::int64_t bytes, std::int64_t align) {
  return guarded(std::int64_t{kFailed}, [&] {
    const std::shared_ptr<Job> job = requireJob("symmetric allocation");
    const std::int64_t offset = job->heap().allocate(bytes, align);
    if (Strict::isOn()) {
      poison(job->heapBase(job->rank()) + offset, bytes);
    }
    return offset;
  });
}

int tdist_rt_heap_free(std::int64_t offset) {
  return done([&] { requireJob("symmetric free")->heap().release(offset); });
}

std::int64_t tdist_rt_heap_used(void) {
  return guarded(std::int64_t{kFailed}, [] {
    const std::shared_ptr<Job> job = currentJob();
    return job ? job->heap().used() : 0;
  });
}

std::int64_t tdist_rt_barrier_arrive(void) {
  return guarded(std::int64_t{kFailed}, [] {
    const std::shared_ptr<Job> job = requireJob("barrier");
    job->host().complete();
    return static_cast<std::int64_t>(job->arrive(&ControlArea::hostBarrier));
  });
}

int tdist_rt_barrier_wait(std::int64_t ticket, std::int64_t slice_ns) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("barrier");
    if (ticket < 1) {
      throw Error(
          concat("barrier: ticket ", ticket, " is not one that tdist_rt_barrier_arrive gave"));
    }
    const auto number = static_cast<std::uint64_t>(ticket);
    tdist_wait_record record{};
    record.kind = TDIST_WAIT_HOST_BARRIER;
    record.offset = -1;
    record.compare = static_cast<std::int32_t>(Compare::Ge);
    record.count = 1;
    record.wanted = job->worldSize();
    record.epoch = number;
    copyText(record.primitive, "host barrier");
    return waitForSlice(*job, record, slice_ns,
                        [&] { return job->isPassed(&ControlArea::hostBarrier, number); });
  });
}

int tdist_rt_wait_until(const void *addr, std::int32_t bytes, std::int32_t cmp, std::int64_t value,
                        std::int64_t slice_ns) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("wait_until");
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
      throw Error(concat("wait_until: a word of ", bytes, " bytes: expected 1, 2, 4 or 8"));
    }
    if (cmp < 0 || cmp >= kCompares) {
      throw Error(
          concat("wait_until: comparison ", cmp, " does not exist: expected 0 to ", kCompares - 1));
    }
    const std::uint64_t address = addressOf(addr);
    const auto compare = static_cast<Compare>(cmp);
    tdist_wait_record record{};
    record.kind = TDIST_WAIT_WORD;
    record.address = address;
    record.offset = job->checkSymmetric("wait_until", address, bytes, bytes);
    record.width = bytes;
    record.compare = cmp;
    record.count = 1;
    record.wanted = value;
    copyText(record.primitive, "host wait_until");
    return waitForSlice(*job, record, slice_ns,
                        [&] { return holds(compare, loadWord(address, bytes), value); });
  });
}

int tdist_rt_check_symmetric(const char *what, const void *addr, std::int64_t bytes,
                             std::int64_t align, std::int32_t pe) {
  return done(
      [&] { (void)requireJob(what)->checkTarget(what, addressOf(addr), bytes, pe, align); });
}

int tdist_rt_check_local(const char *what, const void *addr, std::int64_t bytes) {
  return done([&] { requireJob(what)->checkLocal(what, addressOf(addr), bytes); });
}

int tdist_rt_put(void *dst, const void *src, std::int64_t bytes, std::int32_t pe) {
  return done([&] { requireJob("put")->put("put", addressOf(dst), addressOf(src), bytes, pe); });
}

int tdist_rt_get(void *dst, const void *src, std::int64_t bytes, std::int32_t pe) {
  return done([&] { requireJob("get")->get("get", addressOf(dst), addressOf(src), bytes, pe); });
}

int tdist_rt_put_nbi(void *dst, const void *src, std::int64_t bytes, std::int32_t pe) {
  return done([&] {
    requireJob("put_nbi")->host().putLater("put_nbi", addressOf(dst), addressOf(src), bytes, pe);
  });
}

int tdist_rt_get_nbi(void *dst, const void *src, std::int64_t bytes, std::int32_t pe) {
  return done([&] {
    requireJob("get_nbi")->host().getLater("get_nbi", addressOf(dst), addressOf(src), bytes, pe);
  });
}

int tdist_rt_signal(void *sig, std::int32_t bytes, std::int64_t value, std::int32_t op,
                    std::int32_t pe) {
  return done([&] {
    const std::shared_ptr<Job> job = requireJob("signal");
    if (op != 0 && op != 1) {
      throw Error(concat("signal: operation ", op, " does not exist: expected 0 (set) or 1 (add)"));
    }
    const SignalOp operation = op == 0 ? SignalOp::Set : SignalOp::Add;
    const Author author{.rank = job->rank(),
                        .place = job->places().numberOf("host signal", "", "", 0),
                        .program = {},
                        .isHost = true};
    if (bytes == sizeof(std::int32_t)) {
      job->signal("signal", addressOf(sig), static_cast<std::int32_t>(value), operation, pe,
                  author);
    } else if (bytes == sizeof(std::int64_t)) {
      job->signal("signal", addressOf(sig), value, operation, pe, author);
    } else {
      throw Error(concat("signal: a word of ", bytes, " bytes: expected 4 or 8"));
    }
  });
}

// Copies are complete when they return, or now: what is left is their order, also against plain
// loads and stores on both sides.
int tdist_rt_quiet(void) {
  return done([] {
    requireJob("quiet")->host().complete();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  });
}

int tdist_rt_fence(void) {
  return done([] {
    requireJob("fence")->host().complete();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  });
}

int tdist_rt_look(const std::uint8_t *exited, std::int32_t world_size) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("look");
    if (world_size != job->worldSize()) {
      throw Error(concat("a job of ", job->worldSize(), " PEs, looked at as one of ", world_size));
    }
    if (Engine::instance().isQuiet()) {
      job->deadlock().countLook();
    }
    std::vector<DeadlockWatch::Rank> ranks;
    for (const std::uint8_t hasExited : std::span(exited, static_cast<std::size_t>(world_size))) {
      ranks.push_back(hasExited != 0 ? DeadlockWatch::Rank::Exited : DeadlockWatch::Rank::Here);
    }
    return job->deadlock().find(ranks) ? 1 : 0;
  });
}

int tdist_rt_peer_host_state(std::int32_t pe) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("peer_host_state");
    job->checkPe("peer_host_state", pe);
    constexpr std::uint64_t kKinds = 0x100;
    // Relaxed: for a report.
    return static_cast<int>(std::atomic_ref(job->control(pe).host).load(std::memory_order_relaxed) %
                            kKinds);
  });
}

int tdist_rt_set_count(std::uint64_t key, std::uint64_t count) {
  return guarded(
      kFailed, [&] { return requireJob("set_count")->counts().set(key, count) ? kDone : kNotYet; });
}

std::int64_t tdist_rt_count_of(std::uint64_t key) {
  return guarded(std::int64_t{kFailed}, [&] {
    const std::shared_ptr<Job> job = requireJob("count_of");
    bool isFull = false;
    for (std::int32_t pe = 0; pe < job->worldSize(); ++pe) {
      if (const auto count = CountTable::countIn(job->control(pe).counts, key, isFull)) {
        return static_cast<std::int64_t>(*count);
      }
    }
    return std::int64_t{isFull ? kNotKnown : kFailed};
  });
}

void *tdist_rt_list_wait(const tdist_wait_record *record) {
  return guarded(static_cast<void *>(nullptr), [&]() -> void * {
    const std::shared_ptr<Job> job = requireJob("list_wait");
    WaitSlot *const slot = job->waits().acquire();
    if (slot == nullptr) {
      job->waits().release(slot); // nobody will
      return nullptr;
    }
    slot->write(*record);
    return slot;
  });
}

void tdist_rt_unlist_wait(void *listed) {
  if (const std::shared_ptr<Job> job = currentJob(); job && listed != nullptr) {
    job->waits().release(static_cast<WaitSlot *>(listed));
  }
}

int tdist_rt_judge(const char *text) {
  return done([&] { requireJob("judge")->deadlock().judge(text); });
}

std::int64_t tdist_rt_verdict(char *buffer, std::int64_t capacity) {
  return guarded(std::int64_t{kFailed}, [&] {
    const std::shared_ptr<Job> job = currentJob();
    return copyOut<std::int64_t>(job ? job->deadlock().verdict() : "", buffer, capacity);
  });
}

std::int64_t tdist_rt_describe_waits(char *buffer, std::int64_t capacity) {
  return guarded(std::int64_t{kFailed}, [&] {
    const std::shared_ptr<Job> job = currentJob();
    return copyOut<std::int64_t>(job ? describeWaits(*job, job->rank()) : "[]", buffer, capacity);
  });
}

int tdist_rt_peer_waits(std::int32_t pe, char *buf, std::int64_t cap) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("peer_waits");
    job->checkPe("peer_waits", pe);
    return copyOut<int>(describeWaits(*job, pe), buf, cap);
  });
}

int tdist_rt_peer_finished(std::int32_t pe, char *buf, std::int64_t cap) {
  return guarded(kFailed, [&] {
    const std::shared_ptr<Job> job = requireJob("peer_finished");
    job->checkPe("peer_finished", pe);
    return copyOut<int>(describeFinished(*job, pe), buf, cap);
  });
}
