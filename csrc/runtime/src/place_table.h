// Places in kernels that a PE's programs have signalled from, each under a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tdist::sim {

/// A place, in shared memory: written once, before its number is given to anybody.
struct PlaceSlot {
  std::int32_t line; // in file; 0 where not known
  char primitive[28];
  char kernel[128]; // "" for host code
  char file[224];
};

/// Numbers the places of the own PE. Another PE that has read a number with acquire may read its
/// slot: it is stored before the number is, with release, and never changes.
class PlaceTable {
public:
  /// Stands for a place that found no slot.
  static constexpr std::uint32_t kUnknown = UINT32_MAX;

  explicit PlaceTable(std::span<PlaceSlot> slots) : slots(slots) {}

  /// The number of a place, the same for equal ones. Costs a look-up of the texts.
  std::uint32_t numberOf(std::string_view primitive, std::string_view kernel, std::string_view file,
                         std::int32_t line) noexcept;

private:
  std::mutex mutex;
  std::span<PlaceSlot> slots;
  std::unordered_map<std::string, std::uint32_t> numbers;
};

} // namespace tdist::sim
