#include "place_table.h"

#include "error.h"
#include "wait_table.h"

#include <new>

namespace tdist::sim {

std::uint32_t PlaceTable::numberOf(std::string_view primitive, std::string_view kernel,
                                   std::string_view file, std::int32_t line) noexcept {
  try {
    std::string key = concat(primitive, '\0', kernel, '\0', file, '\0', line);
    const std::scoped_lock lock(mutex);
    if (const auto known = numbers.find(key); known != numbers.end()) {
      return known->second;
    }
    if (numbers.size() == slots.size()) {
      return kUnknown;
    }
    const auto number = static_cast<std::uint32_t>(numbers.size());
    numbers.emplace(std::move(key), number);
    PlaceSlot &slot = slots[number];
    slot.line = line;
    copyText(slot.primitive, primitive);
    copyText(slot.kernel, kernel);
    copyText(slot.file, file);
    return number;
  } catch (const std::bad_alloc &) {
    return kUnknown; // a report will say less
  }
}

} // namespace tdist::sim
