#include "count_table.h"

#include <atomic>

namespace tdist::sim {

bool CountTable::set(std::uint64_t key, std::uint64_t count) noexcept {
  const std::scoped_lock lock(mutex);
  for (CountSlot &slot : slots) {
    const std::atomic_ref slotKey(slot.key);
    const std::uint64_t found = slotKey.load(std::memory_order_seq_cst);
    if (found == 0 || found == key + 1) {
      std::atomic_ref(slot.count).store(count, std::memory_order_seq_cst);
      slotKey.store(key + 1, std::memory_order_seq_cst);
      return true;
    }
  }
  return false;
}

std::optional<std::uint64_t> CountTable::countIn(std::span<CountSlot> slots, std::uint64_t key,
                                                 bool &isFull) noexcept {
  for (CountSlot &slot : slots) {
    const std::uint64_t found = std::atomic_ref(slot.key).load(std::memory_order_seq_cst);
    if (found == key + 1) {
      return std::atomic_ref(slot.count).load(std::memory_order_seq_cst);
    }
    if (found == 0) {
      return std::nullopt;
    }
  }
  isFull = true;
  return std::nullopt;
}

} // namespace tdist::sim
