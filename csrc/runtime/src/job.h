// The job this process is attached to: its PEs, their heaps, signals and barriers among them.
#pragma once

#include "count_table.h"
#include "heap.h"
#include "place_table.h"
#include "segments.h"
#include "tdist_sim.h"
#include "wait_table.h"
#include "write_table.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tdist::sim {

class DeadlockWatch;
class HostMemory;

enum class SignalOp { Set, Add };

class Job {
public:
  Job(std::int32_t rank, std::span<const std::int32_t> fds, std::int64_t heapBytes);
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;
  ~Job();

  [[nodiscard]] std::int32_t rank() const noexcept { return ownRank; }
  [[nodiscard]] std::int32_t worldSize() const noexcept { return segments.count(); }
  [[nodiscard]] Heap &heap() noexcept { return ownHeap; }
  [[nodiscard]] WaitTable &waits() noexcept { return waitTable; }
  [[nodiscard]] PlaceTable &places() noexcept { return placeTable; }
  [[nodiscard]] CountTable &counts() noexcept { return countTable; }
  /// Copies of the host that need not be complete yet.
  [[nodiscard]] HostMemory &host() noexcept { return *hostMemory; }
  [[nodiscard]] DeadlockWatch &deadlock() noexcept { return *deadlockWatch; }
  [[nodiscard]] Doorbell &doorbell() noexcept { return segments.control(ownRank).doorbell; }
  [[nodiscard]] ControlArea &control(std::int32_t pe) const noexcept {
    return segments.control(pe);
  }
  [[nodiscard]] std::byte *heapBase(std::int32_t pe) const noexcept {
    return segments.heapBase(pe);
  }

  /// Throws Error unless 0 <= pe < worldSize(). `what` is the call, for the text.
  void checkPe(const char *what, std::int32_t pe) const;
  /// Offset in the heap of [address, address + bytes), which must be inside one live allocation of
  /// this PE, at a multiple of `alignment`; throws Error.
  [[nodiscard]] std::int64_t checkSymmetric(const char *what, std::uint64_t address,
                                            std::int64_t bytes, std::int64_t alignment = 1) const;
  /// The same for what PE `pe` has at that offset: it must exist, and its allocation be live there
  /// as well as here.
  std::int64_t checkTarget(const char *what, std::uint64_t address, std::int64_t bytes,
                           std::int32_t pe, std::int64_t alignment = 1) const;
  /// The same for a local operand of a copy, which may be any mapped memory outside the segments.
  void checkLocal(const char *what, std::uint64_t address, std::int64_t bytes) const;

  /// The same for a plain load or store of symmetric memory of any PE. Gives where its allocation
  /// is published; nullptr where it is not.
  AllocationSlot *checkAccess(const char *what, std::uint64_t address, std::int64_t bytes) const;
  /// Whether the address is in the segment of some PE; which, and where in that one's heap.
  [[nodiscard]] bool isSymmetric(std::uint64_t address) const noexcept {
    return segments.contains(address);
  }
  [[nodiscard]] std::int32_t ownerOf(std::uint64_t address) const noexcept {
    return segments.peOf(address);
  }
  [[nodiscard]] std::int64_t offsetOf(std::uint64_t address) const noexcept {
    return segments.offsetOf(address);
  }
  /// Checks what a copy is between; whether there is anything to copy.
  [[nodiscard]] bool checkCopy(const char *what, std::uint64_t symmetric, std::uint64_t local,
                               std::int64_t bytes, std::int32_t pe) const;
  /// Whether the address is in the heap of some PE. Then `begin` and `bytes` say which part of the
  /// heap, by offset, stands for the `bytesWanted` bytes there: the allocation around them, or the
  /// whole heap where there is none.
  [[nodiscard]] bool findSymmetric(std::uint64_t address, std::int64_t bytesWanted,
                                   std::int64_t &begin, std::int64_t &bytes) const;

  /// Bytes from an object of this PE to the same object of PE `pe`.
  [[nodiscard]] std::int64_t distance(std::int32_t pe) const noexcept {
    return (pe - ownRank) * segments.stride();
  }

  /// Copies to or from PE `pe`, after the checks. Complete on return.
  void put(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
           std::int32_t pe);
  void get(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
           std::int32_t pe);

  /// Sets or adds to the word at `address` of this PE's heap, on PE `pe`, after the checks. Whoever
  /// sees the new value sees all that this thread stored before. `author` goes on record.
  template <class Word>
  void signal(const char *what, std::uint64_t address, Word value, SignalOp op, std::int32_t pe,
              const Author &author);

  /// Arrives at a barrier among PEs and gives its number: it is passed when isPassed() says so.
  std::uint64_t arrive(std::uint64_t ControlArea::*barrier) noexcept;
  [[nodiscard]] bool isPassed(std::uint64_t ControlArea::*barrier,
                              std::uint64_t number) const noexcept;

  /// Tells all PEs whether a program of this one can run.
  void publishEngine(bool canRun) noexcept;
  /// Tells all PEs what the host does; gives what it did before.
  tdist_host_state publishHost(tdist_host_state state) noexcept;

private:
  /// As checkSymmetric(); gives the allocation, too.
  std::int64_t locate(const char *what, std::uint64_t address, std::int64_t bytes,
                      std::int64_t alignment, Heap::Allocation &allocation) const;
  void failUnlessOwn(const char *what, std::uint64_t address) const;

  const std::int32_t ownRank;
  Segments segments;
  FileDescriptor ownMemory;
  Heap ownHeap;
  WaitTable waitTable;
  PlaceTable placeTable;
  CountTable countTable;
  const std::unique_ptr<HostMemory> hostMemory;
  const std::unique_ptr<DeadlockWatch> deadlockWatch;
};

/// The job of this process; empty when not attached. Launches keep theirs alive.
std::shared_ptr<Job> currentJob();
/// The same; throws Error when not attached. `what` is the call, for the text.
std::shared_ptr<Job> requireJob(const char *what);
[[nodiscard]] std::string notInitialisedText(const char *what);
[[noreturn]] void throwNotInitialised(const char *what);

/// Throws Error when this process is attached already.
void attachJob(std::int32_t rank, std::span<const std::int32_t> fds, std::int64_t heapBytes);
/// Throws Error when this process is not attached.
void detachJob();

} // namespace tdist::sim
