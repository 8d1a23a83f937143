// Who wrote the signal words of a PE last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tdist::sim {

/// Who signals: a program of a kernel, or host code.
struct Author {
  std::int32_t rank;
  std::uint32_t place; // in that PE's places
  std::array<std::int32_t, 3> program;
  bool isHost;
};

/// A signal as it was written.
struct Write {
  std::int64_t offset; // of the word in the heap it was written to
  std::int64_t value;  // set, or added
  std::int64_t at;     // monotonicNanoseconds() just behind
  Author author;
  std::int32_t width; // bytes
  bool isAdd;
};

/// One write behind its sequence number. All zero while there is none.
struct WriteSlot {
  static constexpr std::size_t kWords = 7;

  std::uint64_t sequence; // odd while the record is written
  std::uint64_t words[kWords];

  /// Replaces the write; false if another writer is inside for long, or for ever.
  bool write(const Write &write) noexcept;
  /// A consistent copy, if there is one.
  [[nodiscard]] std::optional<Write> read() noexcept;
};
static_assert(sizeof(WriteSlot) == 64);

/// The last writes to the words of one PE, in its control area. Every PE writes and reads it. It
/// has room for the words that were written last: an older record may have made way.
class WriteTable {
public:
  static constexpr std::size_t kWays = 4; // slots that a word may be in
  static constexpr std::size_t kSlots = 8192;

  explicit WriteTable(std::span<WriteSlot, kSlots> slots) : slots(slots) {}

  void record(const Write &write) noexcept;
  /// The last write to the word at an offset; none before `since` counts.
  [[nodiscard]] std::optional<Write> last(std::int64_t offset, std::int64_t since) noexcept;
  /// Writes to words in [begin, end) since `since`, the latest of each, latest first.
  [[nodiscard]] std::vector<Write> inRange(std::int64_t begin, std::int64_t end,
                                           std::int64_t since);

private:
  [[nodiscard]] std::span<WriteSlot> waysOf(std::int64_t offset) noexcept;

  std::span<WriteSlot, kSlots> slots;
};

} // namespace tdist::sim
