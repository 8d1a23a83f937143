#include "write_table.h"

#include <algorithm>
#include <atomic>

namespace tdist::sim {
namespace {

// Words of a slot: offset + 1, value, time, [rank, place], [x, y], [z, flags], spare.
constexpr std::size_t kOffset = 0;
constexpr std::size_t kValue = 1;
constexpr std::size_t kTime = 2;
constexpr std::size_t kPlace = 3;
constexpr std::size_t kProgram = 4;
constexpr std::size_t kRest = 5;
constexpr std::uint32_t kIsHost = 1;
constexpr std::uint32_t kIsAdd = 2;
constexpr std::uint32_t kWidthShift = 8;
constexpr int kHalf = 32;

constexpr int kTries = 1000; // a writer needs some 20 ns

template <class T> std::atomic_ref<T> atomic(T &word) { return std::atomic_ref<T>(word); }

std::uint64_t pair(std::int32_t low, std::uint32_t high) {
  return static_cast<std::uint32_t>(low) | std::uint64_t{high} << kHalf;
}

std::int32_t lowOf(std::uint64_t word) { return static_cast<std::int32_t>(word); }
std::uint32_t highOf(std::uint64_t word) { return static_cast<std::uint32_t>(word >> kHalf); }

using Words = std::array<std::uint64_t, WriteSlot::kWords>;

Words pack(const Write &write) {
  const Author &author = write.author;
  Words words{};
  words[kOffset] = static_cast<std::uint64_t>(write.offset) + 1;
  words[kValue] = static_cast<std::uint64_t>(write.value);
  words[kTime] = static_cast<std::uint64_t>(write.at);
  words[kPlace] = pair(author.rank, author.place);
  words[kProgram] = pair(author.program[0], static_cast<std::uint32_t>(author.program[1]));
  words[kRest] =
      pair(author.program[2], (author.isHost ? kIsHost : 0) | (write.isAdd ? kIsAdd : 0) |
                                  static_cast<std::uint32_t>(write.width) << kWidthShift);
  return words;
}

Write unpack(const Words &words) {
  const std::uint32_t rest = highOf(words[kRest]);
  return {.offset = static_cast<std::int64_t>(words[kOffset] - 1),
          .value = static_cast<std::int64_t>(words[kValue]),
          .at = static_cast<std::int64_t>(words[kTime]),
          .author = {.rank = lowOf(words[kPlace]),
                     .place = highOf(words[kPlace]),
                     .program = {lowOf(words[kProgram]),
                                 static_cast<std::int32_t>(highOf(words[kProgram])),
                                 lowOf(words[kRest])},
                     .isHost = (rest & kIsHost) != 0},
          .width = static_cast<std::int32_t>(rest >> kWidthShift),
          .isAdd = (rest & kIsAdd) != 0};
}

} // namespace

// The sequence lock of WaitSlot, with writers that exclude each other: the exchange that makes the
// number odd is an acquire, so a writer comes after all of the one before it, whose even number is
// a release. Readers are as in WaitSlot: who sees a word of this write (release, acquire) finds at
// least the odd number behind it.
bool WriteSlot::write(const Write &write) noexcept {
  const Words source = pack(write);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::uint64_t before = atomic(sequence).load(std::memory_order_relaxed);
    if (before % 2 != 0 ||
        !atomic(sequence).compare_exchange_weak(before, before + 1, std::memory_order_acquire,
                                                std::memory_order_relaxed)) {
      continue;
    }
    for (std::size_t i = 0; i < kWords; ++i) {
      atomic(words[i]).store(source[i], std::memory_order_release);
    }
    atomic(sequence).store(before + 2, std::memory_order_release);
    return true;
  }
  return false;
}

std::optional<Write> WriteSlot::read() noexcept {
  Words copy;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint64_t before = atomic(sequence).load(std::memory_order_acquire);
    if (before == 0) {
      return std::nullopt;
    }
    if (before % 2 != 0) {
      continue;
    }
    for (std::size_t i = 0; i < kWords; ++i) {
      copy[i] = atomic(words[i]).load(std::memory_order_acquire);
    }
    if (atomic(sequence).load(std::memory_order_relaxed) == before) {
      return unpack(copy);
    }
  }
  return std::nullopt;
}

std::span<WriteSlot> WriteTable::waysOf(std::int64_t offset) noexcept {
  // Signals are 64 bytes apart, or 8, or 4: the multiplication spreads all of these.
  constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15;
  constexpr std::uint64_t kGroups = kSlots / kWays;
  const std::uint64_t mixed = static_cast<std::uint64_t>(offset) * kGolden;
  return slots.subspan((mixed >> kHalf) % kGroups * kWays, kWays);
}

void WriteTable::record(const Write &write) noexcept {
  const std::uint64_t key = static_cast<std::uint64_t>(write.offset) + 1;
  const std::span<WriteSlot> ways = waysOf(write.offset);
  WriteSlot *oldest = &ways.front();
  std::uint64_t oldestTime = UINT64_MAX;
  for (WriteSlot &slot : ways) {
    // Relaxed: a choice that another writer spoils costs a record, and the texts of a report.
    const std::uint64_t time = atomic(slot.words[kTime]).load(std::memory_order_relaxed);
    if (atomic(slot.words[kOffset]).load(std::memory_order_relaxed) == key) {
      if (time <= static_cast<std::uint64_t>(write.at)) {
        (void)slot.write(write);
      }
      return;
    }
    if (time < oldestTime) {
      oldest = &slot;
      oldestTime = time;
    }
  }
  (void)oldest->write(write);
}

std::optional<Write> WriteTable::last(std::int64_t offset, std::int64_t since) noexcept {
  std::optional<Write> latest;
  for (WriteSlot &slot : waysOf(offset)) {
    const std::optional<Write> found = slot.read();
    if (found && found->offset == offset && found->at >= since &&
        (!latest || found->at > latest->at)) {
      latest = found;
    }
  }
  return latest;
}

std::vector<Write> WriteTable::inRange(std::int64_t begin, std::int64_t end, std::int64_t since) {
  std::vector<Write> found;
  for (WriteSlot &slot : slots) {
    const std::optional<Write> write = slot.read();
    if (write && write->offset >= begin && write->offset < end && write->at >= since) {
      found.push_back(*write);
    }
  }
  std::ranges::sort(found, [](const Write &a, const Write &b) {
    return a.offset != b.offset ? a.offset < b.offset : a.at > b.at;
  });
  const auto repeated = std::ranges::unique(found, {}, &Write::offset);
  found.erase(repeated.begin(), repeated.end());
  std::ranges::sort(found, std::ranges::greater{}, &Write::at);
  return found;
}

} // namespace tdist::sim
