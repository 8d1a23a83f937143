// Events of this process, for timelines and profiles. They go into a file as they happen, so that
// they are there whatever becomes of the process; what is made of them is Python's business
// (triton_dist/trace).
#pragma once

#include "tdist_sim.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tdist::sim {

class Trace {
public:
  /// One event. Fields that do not apply are 0, texts are offsets in the file's table of them.
  struct Record {
    std::uint32_t kind; // tdist_trace_kind, stored last
    std::uint32_t name; // primitive
    std::uint32_t kernel;
    std::uint32_t file;
    std::int32_t line;
    std::int32_t core; // number among the cores of its kind
    std::array<std::int32_t, 3> program;
    std::int32_t pe;       // that is written or read
    std::int64_t begin;    // CLOCK_MONOTONIC, nanoseconds
    std::int64_t end;      // 0: had not ended when the process did
    std::int64_t stream;   //
    std::int64_t launch;   // number in this process
    std::uint64_t address; // of the word or object, in this PE's heap
    std::int64_t value;    // set, added, or seen
    std::int64_t bytes;    // moved, or of the word
    std::int32_t op;       // 0 set, 1 add
    std::int32_t isCube;   // the core's kind
    std::int64_t parent;   // record number of the call or program that it belongs to; 0: none
    std::int64_t reserved[2];
  };
  static_assert(sizeof(Record) == 128);

  /// The file as it begins; texts and then records follow.
  struct Header {
    std::uint64_t magic;
    std::uint64_t textBytes;
    std::uint64_t records;
    std::uint64_t nextText;   // bytes in use
    std::uint64_t nextRecord; // records given out, may be above `records`
    std::uint64_t heapBase;   // of this PE, in this process
    std::int32_t rank;
    std::int32_t worldSize;
  };
  static constexpr std::uint64_t kMagic = 0x7464697374'1001;
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kTextBytes = 1 << 20;
  static constexpr std::size_t kRecords = std::size_t{1} << 22; // pages that are used are taken

  /// Throws Error when the file cannot be grown and mapped.
  Trace(int fd, std::int32_t rank, std::int32_t worldSize, std::uint64_t heapBase);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;
  ~Trace();

  /// That of this process; empty while nothing is traced.
  static std::shared_ptr<Trace> current();
  static void install(std::shared_ptr<Trace> trace);

  std::int64_t nextLaunch() noexcept;
  /// Writes an event down; the record, or nullptr where there is no room.
  Record *add(tdist_trace_kind kind, const Record &record) noexcept;
  [[nodiscard]] std::int64_t numberOf(const Record *record) const noexcept;
  /// Offset of the text in the file's table. Known texts are found by their content.
  std::uint32_t text(std::string_view text);

  std::int32_t takeCore(bool isCube);
  void giveBackCore(bool isCube, std::int32_t core);

private:
  std::byte *memory;
  Header *header;
  Record *records;
  std::atomic<std::int64_t> launches = 0;
  std::mutex mutex;
  std::map<std::string, std::uint32_t, std::less<>> texts;
  std::array<std::vector<bool>, 2> busy; // vector and cube cores
};

} // namespace tdist::sim
