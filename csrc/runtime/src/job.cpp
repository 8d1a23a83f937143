#include "job.h"

#include "address.h"
#include "deadlock.h"
#include "error.h"
#include "host_memory.h"
#include "mapped_memory.h"
#include "strict.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <ostream>
#include <utility>

namespace tdist::sim {
namespace {

struct Hexadecimal {
  std::uint64_t value;
};

std::ostream &operator<<(std::ostream &stream, Hexadecimal number) {
  return stream << "0x" << std::hex << number.value << std::dec;
}

std::int32_t checkedRank(std::int32_t rank, std::size_t worldSize) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= worldSize) {
    throw Error(concat("rank ", rank, " is not in a job of ", worldSize, " PEs: expected 0 to ",
                       worldSize - 1));
  }
  return rank;
}

int duplicate(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    throw Error(concat("descriptor ", fd, " cannot be duplicated: ", systemErrorText(errno)));
  }
  return copy;
}

/// Whether the PE's process has attached; throws Error when its segment is not that PE's.
void checkHeader(ControlArea &area, std::int32_t pe, std::int32_t worldSize,
                 std::int64_t heapBytes) {
  // Acquire: a magic number that is there makes the fields stored before it visible.
  const std::uint64_t magic = std::atomic_ref(area.magic).load(std::memory_order_acquire);
  if (magic == 0) {
    return; // that PE has not attached yet
  }
  if (magic != ControlArea::kMagic) {
    throw Error(concat("the memfd of PE ", pe,
                       " is laid out by another version of this library: "
                       "all ranks of a job must load the same one"));
  }
  if (std::cmp_not_equal(area.rank, pe) || std::cmp_not_equal(area.worldSize, worldSize) ||
      std::cmp_not_equal(area.heapBytes, heapBytes)) {
    throw Error(concat("the memfd given for PE ", pe, " of ", worldSize, " with a heap of ",
                       heapBytes, " bytes is that of PE ", area.rank, " of ", area.worldSize,
                       " with a heap of ", area.heapBytes, " bytes"));
  }
}

} // namespace

Job::Job(std::int32_t rank, std::span<const std::int32_t> fds, std::int64_t heapBytes)
    : ownRank(checkedRank(rank, fds.size())), segments(fds, heapBytes),
      ownMemory(duplicate(fds[static_cast<std::size_t>(rank)])),
      ownHeap(ownMemory.get(), kControlBytes, heapBytes, segments.control(rank).allocations),
      waitTable(segments.control(rank).waits, segments.control(rank).unlistedWaits),
      placeTable(segments.control(rank).places), countTable(segments.control(rank).counts),
      hostMemory(std::make_unique<HostMemory>(*this)),
      deadlockWatch(std::make_unique<DeadlockWatch>(*this)) {
  for (std::int32_t pe = 0; pe < worldSize(); ++pe) {
    checkHeader(control(pe), pe, worldSize(), heapBytes);
  }
  ControlArea &own = control(rank);
  if (std::atomic_ref(own.magic).load(std::memory_order_acquire) != 0) {
    throw Error(concat("the memfd of PE ", rank, " has served a job before: bring a new one"));
  }
  own.heapBytes = static_cast<std::uint64_t>(heapBytes);
  own.rank = static_cast<std::uint32_t>(rank);
  own.worldSize = static_cast<std::uint32_t>(worldSize());
  own.strictSeed = Strict::seed();
  // Release: who sees the magic number sees the fields.
  std::atomic_ref(own.magic).store(ControlArea::kMagic, std::memory_order_release);
}

Job::~Job() = default;

void Job::checkPe(const char *what, std::int32_t pe) const {
  if (pe < 0 || pe >= worldSize()) {
    throw Error(concat(what, ": PE ", pe, " does not exist: expected 0 to ", worldSize() - 1));
  }
}

std::int64_t Job::checkSymmetric(const char *what, std::uint64_t address, std::int64_t bytes,
                                 std::int64_t alignment) const {
  Heap::Allocation allocation{};
  return locate(what, address, bytes, alignment, allocation);
}

/// Throws Error for an address outside of this PE's own heap, unless it is just past its end.
void Job::failUnlessOwn(const char *what, std::uint64_t address) const {
  const Hexadecimal shown{address};
  if (!segments.contains(address)) {
    throw Error(concat(what, ": address ", shown,
                       " is local memory, not symmetric: take it from aclshmem_create_tensor or "
                       "aclshmem_malloc"));
  }
  const std::int32_t pe = segments.peOf(address);
  const std::int64_t offset = segments.offsetOf(address);
  if (pe != ownRank) {
    throw Error(concat(what, ": address ", shown, " is in the heap of PE ", pe, " (offset ", offset,
                       "), as symm_at or remote_ptr gave it: pass the address of PE ", ownRank,
                       "'s own object"));
  }
  if (offset < 0) {
    throw Error(concat(what, ": address ", shown, " is ", -offset,
                       " bytes before the beginning of PE ", pe, "'s symmetric heap"));
  }
}

std::int64_t Job::locate(const char *what, std::uint64_t address, std::int64_t bytes,
                         std::int64_t alignment, Heap::Allocation &allocation) const {
  const Hexadecimal shown{address};
  const std::int32_t pe = ownRank;
  const auto offset = static_cast<std::int64_t>(address - addressOf(heapBase(pe)));
  // Most often it is so; to find the PE of any address takes a division.
  if (offset < 0 || offset >= segments.heapBytes()) {
    failUnlessOwn(what, address);
  }
  const std::optional<Heap::Allocation> found = ownHeap.find(offset, bytes);
  if (!found) {
    throw Error(concat(what, ": address ", shown, ", offset ", offset, " of PE ", pe,
                       "'s symmetric heap, ", ownHeap.whyNotLive(offset, bytes)));
  }
  if (offset % alignment != 0) {
    throw Error(concat(what, ": address ", shown, ", offset ", offset, " of PE ", pe,
                       "'s symmetric heap, is no multiple of the word's ", alignment, " bytes"));
  }
  allocation = *found;
  return offset;
}

std::int64_t Job::checkTarget(const char *what, std::uint64_t address, std::int64_t bytes,
                              std::int32_t pe, std::int64_t alignment) const {
  checkPe(what, pe);
  Heap::Allocation own{};
  const std::int64_t offset = locate(what, address, bytes, alignment, own);
  if (pe == ownRank) {
    return offset;
  }
  // Acquire: a PE whose magic number is there is one whose table counts.
  const bool hasAttached = std::atomic_ref(control(pe).magic).load(std::memory_order_acquire) != 0;
  if (!own.slot || !hasAttached) {
    return offset; // the other side is not published: only the own one is known
  }
  const std::span<AllocationSlot> theirs = control(pe).allocations;
  const auto holds = [&](AllocationSlot &slot) { return slot.range().holds(offset, bytes); };
  // PEs that allocate alike use the same slot; one that did not may have it in another.
  if (!holds(theirs[*own.slot]) && std::ranges::none_of(theirs, holds)) {
    throw Error(concat(what, ": the ", bytes, " bytes at offset ", offset,
                       " of the symmetric heap are in an allocation of ", own.bytes,
                       " bytes on PE ", ownRank, ", but in no live allocation of PE ", pe,
                       ": that PE has freed it, or allocated something else"));
  }
  return offset;
}

bool Job::findSymmetric(std::uint64_t address, std::int64_t bytesWanted, std::int64_t &begin,
                        std::int64_t &bytes) const {
  if (!segments.contains(address) || segments.offsetOf(address) < 0) {
    return false;
  }
  const std::int64_t offset = segments.offsetOf(address);
  const std::optional<Heap::Allocation> allocation = ownHeap.find(offset, 1);
  begin = allocation ? allocation->offset : 0;
  bytes = allocation ? allocation->bytes : segments.heapBytes();
  bytes = std::max(bytes, offset + bytesWanted - begin);
  return true;
}

// Seq_cst: who finds all ranks stuck compares words of several PEs, and reads them a second time to
// see that none has changed in between, for which all changes must be in one order.
void Job::publishEngine(bool canRun) noexcept {
  const std::atomic_ref word(control(ownRank).engine);
  const std::uint64_t now = word.load(std::memory_order_relaxed);
  if ((now % 2 != 0) != canRun) { // the engine's lock makes this the only writer
    word.store(now + 1, std::memory_order_seq_cst);
  }
}

tdist_host_state Job::publishHost(tdist_host_state state) noexcept {
  constexpr std::uint64_t kKinds = 0x100;
  const std::atomic_ref word(control(ownRank).host);
  std::uint64_t before = word.load(std::memory_order_relaxed);
  // A wait within a wait: nothing has changed for the others.
  while (before % kKinds != static_cast<std::uint64_t>(state) &&
         !word.compare_exchange_weak(
             before, (before / kKinds + 1) * kKinds + static_cast<std::uint64_t>(state),
             std::memory_order_seq_cst)) {
  }
  return static_cast<tdist_host_state>(before % kKinds);
}

AllocationSlot *Job::checkAccess(const char *what, std::uint64_t address,
                                 std::int64_t bytes) const {
  const std::int32_t pe = ownerOf(address);
  const std::uint64_t own = address - static_cast<std::uint64_t>(distance(pe));
  const std::int64_t offset = checkTarget(what, own, bytes, pe);
  const std::optional<Heap::Allocation> allocation = ownHeap.find(offset, bytes);
  return allocation && allocation->slot ? &control(pe).allocations[*allocation->slot] : nullptr;
}

void Job::checkLocal(const char *what, std::uint64_t address, std::int64_t bytes) const {
  if (segments.contains(address)) {
    (void)checkSymmetric(what, address, bytes);
  } else if (!isMapped(address, bytes)) {
    throw Error(concat(what, ": the ", bytes, " bytes at local address ", Hexadecimal{address},
                       " are not all memory of this process: the tensor was freed, or they reach "
                       "past its end"));
  }
}

bool Job::checkCopy(const char *what, std::uint64_t symmetric, std::uint64_t local,
                    std::int64_t bytes, std::int32_t pe) const {
  checkPe(what, pe);
  if (bytes < 0) {
    throw Error(concat(what, ": ", bytes, " bytes cannot be copied: expected 0 or more"));
  }
  if (bytes == 0) {
    return false;
  }
  (void)checkTarget(what, symmetric, bytes, pe);
  checkLocal(what, local, bytes);
  return true;
}

void Job::put(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
              std::int32_t pe) {
  if (!checkCopy(what, dst, src, bytes, pe)) {
    return;
  }
  std::memmove(pointerTo<std::byte>(dst) + distance(pe), pointerTo<const std::byte>(src),
               static_cast<std::size_t>(bytes));
  // Some wait for data itself. Plain stores are not in the order that Doorbell relies on, so this
  // ring may miss a sleeper, who then sees the data at the end of its sleep.
  control(pe).doorbell.ring();
}

void Job::get(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
              std::int32_t pe) {
  if (!checkCopy(what, src, dst, bytes, pe)) {
    return;
  }
  std::memmove(pointerTo<std::byte>(dst), pointerTo<const std::byte>(src) + distance(pe),
               static_cast<std::size_t>(bytes));
}

template <class Word>
void Job::signal(const char *what, std::uint64_t address, Word value, SignalOp op, std::int32_t pe,
                 const Author &author) {
  const std::int64_t offset = checkTarget(what, address, sizeof(Word), pe, sizeof(Word));
  const std::atomic_ref<Word> word(*pointerTo<Word>(address + distance(pe)));
  // Seq_cst holds two orders in one: release, so that who sees the value with acquire sees all
  // stores before it; and a place in the total order before the load in ring() (see Doorbell).
  if (op == SignalOp::Set) {
    word.store(value, std::memory_order_seq_cst);
  } else {
    word.fetch_add(value, std::memory_order_seq_cst);
  }
  WriteTable(control(pe).writes)
      .record({.offset = offset,
               .value = value,
               .at = monotonicNanoseconds(),
               .author = author,
               .width = sizeof(Word),
               .isAdd = op == SignalOp::Add});
  control(pe).doorbell.ring();
}
template void Job::signal(const char *, std::uint64_t, std::int32_t, SignalOp, std::int32_t,
                          const Author &);
template void Job::signal(const char *, std::uint64_t, std::int64_t, SignalOp, std::int32_t,
                          const Author &);

// A barrier among PEs is one counter a PE, which only that PE raises: PE p is past the arrival at
// barrier n when its counter is at least n. Everybody waits for all counters.
// Memory: the raise is a release and isPassed() an acquire, so what a PE stored before it arrived
// is visible to all who pass. Wakes: raises and the loads of isPassed() are seq_cst, so of several
// who arrive at once, the one whose raise is last in the total order finds the barrier passed and
// rings for everybody; who arrives earlier has nobody to wake.
std::uint64_t Job::arrive(std::uint64_t ControlArea::*barrier) noexcept {
  const std::uint64_t number =
      std::atomic_ref(control(ownRank).*barrier).fetch_add(1, std::memory_order_seq_cst) + 1;
  if (isPassed(barrier, number)) {
    for (std::int32_t pe = 0; pe < worldSize(); ++pe) {
      control(pe).doorbell.ring();
    }
  }
  return number;
}

bool Job::isPassed(std::uint64_t ControlArea::*barrier, std::uint64_t number) const noexcept {
  for (std::int32_t pe = 0; pe < worldSize(); ++pe) {
    if (std::atomic_ref(control(pe).*barrier).load(std::memory_order_seq_cst) < number) {
      return false;
    }
  }
  return true;
}

namespace {

std::mutex jobMutex;
std::shared_ptr<Job> job; // guarded by jobMutex

} // namespace

std::shared_ptr<Job> currentJob() {
  const std::scoped_lock lock(jobMutex);
  return job;
}

std::shared_ptr<Job> requireJob(const char *what) {
  std::shared_ptr<Job> current = currentJob();
  if (!current) {
    throwNotInitialised(what);
  }
  return current;
}

std::string notInitialisedText(const char *what) {
  return concat(what, ": aclshmem is not initialised in this process: call aclshmem_init first");
}

void throwNotInitialised(const char *what) { throw Error(notInitialisedText(what)); }

void attachJob(std::int32_t rank, std::span<const std::int32_t> fds, std::int64_t heapBytes) {
  const std::scoped_lock lock(jobMutex);
  if (job) {
    throw Error(concat("this process is attached already, as PE ", job->rank(), " of ",
                       job->worldSize(), ": detach first"));
  }
  job = std::make_shared<Job>(rank, fds, heapBytes);
}

void detachJob() {
  std::shared_ptr<Job> leaving; // unmapped after the lock is free
  const std::scoped_lock lock(jobMutex);
  if (!job) {
    throw Error("this process is not attached to a job: there is nothing to detach");
  }
  leaving.swap(job);
}

} // namespace tdist::sim
