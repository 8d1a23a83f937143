#include "wait_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <ranges>

namespace tdist::sim {
namespace {

template <class T> std::atomic_ref<T> atomic(T &word) { return std::atomic_ref<T>(word); }

} // namespace

// The sequence lock, from the C++ memory model. Each slot has one writer at a time. The words are
// stored with release, so the odd sequence number happens before each of them for whoever loads one
// of them with acquire: a reader that saw a word of a write finds at least that write's odd number
// afterwards, and its two loads of the sequence differ. The even number at the end is a release: a
// reader that starts from it sees all words of that write or of a later one.
void WaitSlot::write(const tdist_wait_record &record) noexcept {
  std::array<std::uint64_t, kWords> source;
  std::memcpy(source.data(), &record, sizeof record);
  const std::uint64_t before = atomic(sequence).load(std::memory_order_relaxed);
  atomic(sequence).store(before + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kWords; ++i) {
    atomic(words[i]).store(source[i], std::memory_order_release);
  }
  atomic(sequence).store(before + 2, std::memory_order_release);
}

void WaitSlot::clear() noexcept {
  const std::uint64_t before = atomic(sequence).load(std::memory_order_relaxed);
  atomic(sequence).store(before + 1, std::memory_order_relaxed);
  atomic(words[0]).store(0, std::memory_order_release); // holds `kind`
  atomic(sequence).store(before + 2, std::memory_order_release);
}
static_assert(TDIST_WAIT_NONE == 0 && offsetof(tdist_wait_record, kind) == 0);

tdist_wait_record WaitSlot::read() noexcept {
  // A writer needs some 50 ns; one that died inside would leave the number odd for ever.
  constexpr int kTries = 1000;
  std::array<std::uint64_t, kWords> copy;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint64_t before = atomic(sequence).load(std::memory_order_acquire);
    if (before % 2 != 0) {
      continue;
    }
    for (std::size_t i = 0; i < kWords; ++i) {
      copy[i] = atomic(words[i]).load(std::memory_order_acquire);
    }
    if (atomic(sequence).load(std::memory_order_relaxed) == before) {
      tdist_wait_record record;
      std::memcpy(&record, copy.data(), sizeof record);
      return record;
    }
  }
  return {};
}

void copyText(std::span<char> field, std::string_view text) noexcept {
  if (text.size() >= field.size()) {
    text.remove_prefix(text.size() - field.size() + 1);
  }
  const auto end = std::ranges::copy(text, field.begin()).out;
  std::fill(end, field.end(), '\0');
}

std::int64_t monotonicNanoseconds() noexcept {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosecondsPerSecond + now.tv_nsec;
}

WaitTable::WaitTable(std::span<WaitSlot> slots, std::uint64_t &unlisted) : unlisted(unlisted) {
  unused.reserve(slots.size());
  for (WaitSlot &slot : slots | std::views::reverse) {
    unused.push_back(&slot);
  }
}

WaitSlot *WaitTable::acquire() noexcept {
  const std::scoped_lock lock(mutex);
  if (unused.empty()) {
    // Relaxed, as below: a number for reports, which orders nothing.
    atomic(unlisted).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  WaitSlot *slot = unused.back();
  unused.pop_back();
  return slot;
}

void WaitTable::release(WaitSlot *slot) noexcept {
  const std::scoped_lock lock(mutex);
  if (slot == nullptr) {
    atomic(unlisted).fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  slot->clear();
  unused.push_back(slot); // does not grow: all slots fit in what was reserved
}

} // namespace tdist::sim
