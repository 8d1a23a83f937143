#include "deadlock.h"

#include "address.h"
#include "compare.h"
#include "job.h"
#include "tdist_sim.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tdist::sim {
namespace {

constexpr std::uint64_t kLooksNeeded = 2;

enum Verdict : std::uint64_t { kNone = 0, kWriting = 1, kWritten = 2 };

template <class T> std::atomic_ref<T> atomic(T &word) { return std::atomic_ref<T>(word); }

bool isWaiting(std::uint64_t host) {
  constexpr std::uint64_t kKinds = 0x100;
  const std::uint64_t state = host % kKinds;
  return state == TDIST_HOST_SYNCHRONIZES || state == TDIST_HOST_IN_SHMEM ||
         state == TDIST_HOST_IN_HCCL;
}

} // namespace

void DeadlockWatch::countLook() noexcept {
  atomic(job.control(job.rank()).looks).fetch_add(1, std::memory_order_seq_cst);
}

std::optional<DeadlockWatch::Snapshot>
DeadlockWatch::takeIfQuiet(std::span<const Rank> ranks) const {
  Snapshot snapshot;
  for (std::int32_t pe = 0; pe < job.worldSize(); ++pe) {
    ControlArea &control = job.control(pe);
    const Words words{.engine = atomic(control.engine).load(std::memory_order_seq_cst),
                      .host = atomic(control.host).load(std::memory_order_seq_cst),
                      .looks = atomic(control.looks).load(std::memory_order_seq_cst)};
    const bool isHere = ranks[static_cast<std::size_t>(pe)] == Rank::Here;
    if (words.engine % 2 != 0 || (isHere && !isWaiting(words.host))) {
      return std::nullopt;
    }
    snapshot.push_back(words);
  }
  return snapshot;
}

/// Whether something that is waited for has come, or is not known.
bool DeadlockWatch::isAnyWaitOver(std::span<const Rank> ranks) const {
  for (std::int32_t pe = 0; pe < job.worldSize(); ++pe) {
    ControlArea &control = job.control(pe);
    // Whose host is here has looked at these, too.
    if (ranks[static_cast<std::size_t>(pe)] == Rank::Exited &&
        atomic(control.unlistedWaits).load(std::memory_order_seq_cst) != 0) {
      return true;
    }
    for (WaitSlot &slot : control.waits) {
      const tdist_wait_record record = slot.read();
      switch (record.kind) {
      case TDIST_WAIT_WORD:
        if (holds(static_cast<Compare>(record.compare),
                  loadWord(addressOf(job.heapBase(pe) + record.offset), record.width),
                  record.wanted)) {
          return true;
        }
        break;
      case TDIST_WAIT_DEVICE_BARRIER:
        if (job.isPassed(&ControlArea::deviceBarrier, record.epoch)) {
          return true;
        }
        break;
      case TDIST_WAIT_HOST_BARRIER:
        if (job.isPassed(&ControlArea::hostBarrier, record.epoch)) {
          return true;
        }
        break;
      case TDIST_WAIT_LOOP:
        return true;
      default: // of programs, whose own waits are listed
        break;
      }
    }
  }
  return false;
}

bool DeadlockWatch::find(std::span<const Rank> ranks) {
  const std::scoped_lock lock(mutex);
  const std::optional<Snapshot> now = takeIfQuiet(ranks);
  const auto isSame = [](const Snapshot &a, const Snapshot &b) {
    return std::ranges::equal(a, b, [](const Words &one, const Words &other) {
      return one.engine == other.engine && one.host == other.host;
    });
  };
  if (!now || !first || !isSame(*first, *now)) {
    first = now;
    return false;
  }
  for (std::size_t pe = 0; pe < now->size(); ++pe) {
    if (ranks[pe] == Rank::Here && (*now)[pe].looks < (*first)[pe].looks + kLooksNeeded) {
      return false;
    }
  }
  if (isAnyWaitOver(ranks)) {
    first.reset();
    return false;
  }
  const std::optional<Snapshot> last = takeIfQuiet(ranks);
  if (!last || !isSame(*first, *last)) {
    first = last;
    return false;
  }
  return true;
}

// One rank writes the text, once: it is the one whose exchange succeeds. Release and acquire: who
// finds it written reads all of it.
void DeadlockWatch::judge(std::string_view text) noexcept {
  ControlArea &control = job.control(0);
  std::uint64_t none = kNone;
  if (!atomic(control.verdictState)
           .compare_exchange_strong(none, kWriting, std::memory_order_relaxed)) {
    return;
  }
  const std::size_t size = std::min(text.size(), sizeof control.verdict - 1);
  std::memcpy(control.verdict, text.data(), size);
  control.verdict[size] = '\0';
  atomic(control.verdictState).store(kWritten, std::memory_order_release);
  for (std::int32_t pe = 0; pe < job.worldSize(); ++pe) {
    job.control(pe).doorbell.ring();
  }
}

std::string DeadlockWatch::verdict() const {
  ControlArea &control = job.control(0);
  const bool isWritten = atomic(control.verdictState).load(std::memory_order_acquire) == kWritten;
  return isWritten ? control.verdict : "";
}

} // namespace tdist::sim
