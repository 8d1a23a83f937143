#include "deferred_memory.h"

#include "address.h"
#include "compare.h"
#include "error.h"
#include "wait_table.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace tdist::sim {
namespace {

constexpr std::chrono::microseconds kGlimpse{1000};
// Until who has been woken gets a core, where there are more threads than cores.
constexpr std::chrono::milliseconds kLongestWake{100};

template <class Word> void storeWord(std::uint64_t address, const std::byte *source) noexcept {
  Word word;
  std::memcpy(&word, source, sizeof word);
  // Relaxed, as a plain store is: what orders it is the signal or the fence behind the release.
  std::atomic_ref(*pointerTo<Word>(address)).store(word, std::memory_order_relaxed);
}

/// Writes words as wide as the addresses allow, so that none that the program has stored whole is
/// ever seen in parts.
void copyVisibly(std::uint64_t address, const std::byte *source, std::uint64_t bytes) noexcept {
  const auto fits = [&](std::uint64_t width) { return bytes >= width && address % width == 0; };
  while (bytes > 0) {
    std::uint64_t width = 1;
    if (fits(sizeof(std::uint64_t))) {
      width = sizeof(std::uint64_t);
      storeWord<std::uint64_t>(address, source);
    } else if (fits(sizeof(std::uint32_t))) {
      width = sizeof(std::uint32_t);
      storeWord<std::uint32_t>(address, source);
    } else if (fits(sizeof(std::uint16_t))) {
      width = sizeof(std::uint16_t);
      storeWord<std::uint16_t>(address, source);
    } else {
      storeWord<std::uint8_t>(address, source);
    }
    address += width;
    source += width;
    bytes -= width;
  }
}

} // namespace

void DeferredMemory::check(const char *what, std::uint64_t address, std::int64_t bytes) {
  if (recent.slot != nullptr && job.ownerOf(address) == recent.pe &&
      recent.slot->range().holds(job.offsetOf(address), bytes)) {
    return;
  }
  recent = {.slot = job.checkAccess(what, address, bytes), .pe = job.ownerOf(address)};
}

void DeferredMemory::store(std::uint64_t address, const void *source, std::int64_t bytes) {
  if (!job.isSymmetric(address)) {
    std::memcpy(pointerTo<void>(address), source, static_cast<std::size_t>(bytes));
    return;
  }
  check("store", address, bytes);
  const auto *from = static_cast<const std::byte *>(source);
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  while (address < end) {
    const std::uint64_t begin = address / kLineBytes * kLineBytes;
    const std::uint64_t count = std::min(end, begin + kLineBytes) - address;
    const auto [found, isNew] = lines.try_emplace(begin);
    if (isNew) {
      order.push_back(begin);
    }
    std::memcpy(found->second.bytes.data() + (address - begin), from, count);
    const std::uint64_t mask =
        count == kLineBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    found->second.written |= mask << (address - begin);
    address += count;
    from += count;
  }
  while (lines.size() > kMostLines) {
    releaseAny();
  }
}

void DeferredMemory::load(std::uint64_t address, void *target, std::int64_t bytes) {
  if (job.isSymmetric(address)) {
    check("load", address, bytes);
  }
  auto *to = static_cast<std::byte *>(target);
  std::memcpy(to, pointerTo<const void>(address), static_cast<std::size_t>(bytes));
  if (lines.empty()) {
    return;
  }
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  for (std::uint64_t begin = address / kLineBytes * kLineBytes; begin < end; begin += kLineBytes) {
    const auto found = lines.find(begin);
    if (found == lines.end()) {
      continue;
    }
    const std::uint64_t last = std::min(end, begin + kLineBytes);
    for (std::uint64_t at = std::max(address, begin); at < last; ++at) {
      if ((found->second.written >> (at - begin) & 1) != 0) {
        to[at - address] = found->second.bytes[at - begin];
      }
    }
  }
}

/// The bytes that the program has written become visible, and who waits for them looks again.
void DeferredMemory::write(std::uint64_t address, const Line &line) {
  std::uint64_t begin = 0;
  while (begin < kLineBytes) {
    if ((line.written >> begin & 1) == 0) {
      ++begin;
      continue;
    }
    std::uint64_t end = begin + 1;
    while (end < kLineBytes && (line.written >> end & 1) != 0) {
      ++end;
    }
    copyVisibly(address + begin, line.bytes.data() + begin, end - begin);
    begin = end;
  }
}

void DeferredMemory::releaseAny() {
  const std::size_t at = dice.below(order.size());
  const std::uint64_t address = std::exchange(order[at], order.back());
  order.pop_back();
  const auto line = lines.extract(address);
  write(address, line.mapped());
  // Seq_cst: between the plain stores and the look for sleepers, as Doorbell wants it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lastOwner = job.ownerOf(address);
  job.control(lastOwner).doorbell.ring();
}

bool DeferredMemory::isSomeoneWaking() const {
  return std::ranges::any_of(job.control(lastOwner).waits, [&](WaitSlot &slot) {
    const tdist_wait_record record = slot.read();
    return record.kind == TDIST_WAIT_WORD &&
           holds(static_cast<Compare>(record.compare),
                 loadWord(addressOf(job.heapBase(lastOwner) + record.offset), record.width),
                 record.wanted);
  });
}

void DeferredMemory::release() {
  // Once in a while others get the time to see some of it without the rest.
  const std::size_t pausedAt =
      order.size() > 1 && dice.oneIn(2) ? 1 + dice.below(order.size() - 1) : 0;
  while (!order.empty()) {
    releaseAny();
    if (order.size() != pausedAt || pausedAt == 0) {
      continue;
    }
    const auto limit = std::chrono::steady_clock::now() + kLongestWake;
    bool isWaking = true;
    while (isWaking && std::chrono::steady_clock::now() < limit) {
      isWaking = isSomeoneWaking();
      std::this_thread::sleep_for(kGlimpse); // who has woken reads what it waited for
    }
  }
}

/// Before the runtime itself reads or writes there: a program sees its own accesses in order.
void DeferredMemory::releaseRange(std::uint64_t address, std::int64_t bytes) {
  if (lines.empty()) {
    return;
  }
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  for (std::uint64_t begin = address / kLineBytes * kLineBytes; begin < end; begin += kLineBytes) {
    const auto found = lines.find(begin);
    if (found != lines.end()) {
      write(begin, found->second);
      lines.erase(found);
      std::erase(order, begin);
    }
  }
}

void DeferredMemory::put(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                         std::int32_t pe) {
  if (!job.checkCopy(what, dst, src, bytes, pe)) {
    return;
  }
  releaseRange(src, bytes);
  releaseRange(dst + static_cast<std::uint64_t>(job.distance(pe)), bytes);
  job.put(what, dst, src, bytes, pe);
}

void DeferredMemory::get(const char *what, std::uint64_t dst, std::uint64_t src, std::int64_t bytes,
                         std::int32_t pe) {
  if (!job.checkCopy(what, src, dst, bytes, pe)) {
    return;
  }
  releaseRange(dst, bytes);
  releaseRange(src + static_cast<std::uint64_t>(job.distance(pe)), bytes);
  job.get(what, dst, src, bytes, pe);
}

void DeferredMemory::putLater(const char *what, std::uint64_t dst, std::uint64_t src,
                              std::int64_t bytes, std::int32_t pe, std::optional<Signal> signal) {
  const bool hasData = job.checkCopy(what, dst, src, bytes, pe);
  if (!hasData && !signal) {
    return;
  }
  Copy copy{.what = what,
            .dst = dst,
            .src = src,
            .bytes = bytes,
            .pe = pe,
            .isPut = true,
            .early = {},
            .signal = signal};
  if (hasData) {
    releaseRange(src, bytes);
    if (dice.oneIn(2)) {
      const auto *data = pointerTo<const std::byte>(src);
      copy.early.emplace(data, data + bytes);
    }
  }
  copies.push_back(std::move(copy));
}

void DeferredMemory::getLater(const char *what, std::uint64_t dst, std::uint64_t src,
                              std::int64_t bytes, std::int32_t pe) {
  if (job.checkCopy(what, src, dst, bytes, pe)) {
    copies.push_back({.what = what,
                      .dst = dst,
                      .src = src,
                      .bytes = bytes,
                      .pe = pe,
                      .isPut = false,
                      .early = {},
                      .signal = {}});
  }
}

void DeferredMemory::deliver(const Copy &copy) {
  if (!copy.isPut) {
    get(copy.what, copy.dst, copy.src, copy.bytes, copy.pe);
    return;
  }
  put(copy.what, copy.dst, copy.early ? addressOf(copy.early->data()) : copy.src, copy.bytes,
      copy.pe);
  if (copy.signal) {
    const Signal &signal = *copy.signal;
    job.signal(copy.what, signal.address, signal.value, signal.op, copy.pe, signal.author);
  }
}

void DeferredMemory::complete() {
  release();
  while (!copies.empty()) {
    const std::size_t at = dice.below(copies.size());
    const Copy copy = std::exchange(copies[at], copies.back());
    copies.pop_back();
    deliver(copy);
  }
}

bool DeferredMemory::mayProgress() const noexcept {
  return !order.empty() ||
         std::ranges::any_of(copies, [](const Copy &copy) { return copy.signal && !copy.isStuck; });
}

bool DeferredMemory::progress() {
  std::vector<std::size_t> signalling;
  for (std::size_t at = 0; at < copies.size(); ++at) {
    if (copies[at].signal && !copies[at].isStuck) {
      signalling.push_back(at);
    }
  }
  const std::size_t choices = order.size() + signalling.size();
  if (choices == 0) {
    return false;
  }
  const std::size_t choice = dice.below(choices);
  if (choice < order.size()) {
    releaseAny();
    return true;
  }
  const std::size_t at = signalling[choice - order.size()];
  try {
    deliver(copies[at]);
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(at));
  } catch (const Error &) {
    copies[at].isStuck = true; // complete() tells
  }
  return true;
}

} // namespace tdist::sim
