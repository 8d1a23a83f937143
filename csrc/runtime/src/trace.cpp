#include "trace.h"

#include "error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace tdist::sim {
namespace {

constexpr std::size_t kFileBytes =
    Trace::kHeaderBytes + Trace::kTextBytes + Trace::kRecords * sizeof(Trace::Record);

std::atomic<bool> isOn = false;
std::mutex installing;
std::shared_ptr<Trace> installed;

} // namespace

Trace::Trace(int fd, std::int32_t rank, std::int32_t worldSize, std::uint64_t heapBase) {
  void *mapped = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(kFileBytes)) == 0) {
    mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  if (mapped == MAP_FAILED) {
    throw Error(concat("the file of traced events cannot be made: ", systemErrorText(errno)));
  }
  memory = static_cast<std::byte *>(mapped);
  records = reinterpret_cast<Record *>(memory + kHeaderBytes + kTextBytes);
  header = new (memory) Header{.magic = kMagic,
                               .textBytes = kTextBytes,
                               .records = kRecords,
                               .nextText = 1, // offset 0 is the empty text
                               .nextRecord = 1,
                               .heapBase = heapBase,
                               .rank = rank,
                               .worldSize = worldSize};
}

Trace::~Trace() { munmap(memory, kFileBytes); }

std::shared_ptr<Trace> Trace::current() {
  // Relaxed: whoever begins a trace and then launches does both in order; others see it soon.
  if (!isOn.load(std::memory_order_relaxed)) {
    return nullptr;
  }
  const std::scoped_lock lock(installing);
  return installed;
}

void Trace::install(std::shared_ptr<Trace> trace) {
  const std::scoped_lock lock(installing);
  installed = std::move(trace);
  isOn.store(installed != nullptr, std::memory_order_relaxed);
}

std::int64_t Trace::nextLaunch() noexcept {
  return launches.fetch_add(1, std::memory_order_relaxed) + 1;
}

Trace::Record *Trace::add(tdist_trace_kind kind, const Record &record) noexcept {
  // Relaxed: it only hands out room. Readers of the file go by each record's kind.
  const std::uint64_t index =
      std::atomic_ref(header->nextRecord).fetch_add(1, std::memory_order_relaxed);
  if (index >= kRecords) {
    return nullptr;
  }
  Record &room = records[index];
  room = record; // with kind 0
  // Release: a reader that sees the kind sees the rest.
  std::atomic_ref(room.kind).store(static_cast<std::uint32_t>(kind), std::memory_order_release);
  return &room;
}

std::int64_t Trace::numberOf(const Record *record) const noexcept {
  return record == nullptr ? 0 : record - records;
}

std::uint32_t Trace::text(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const std::scoped_lock lock(mutex);
  if (const auto known = texts.find(text); known != texts.end()) {
    return known->second;
  }
  const std::uint64_t begin = header->nextText;
  if (begin + text.size() + 1 > kTextBytes) {
    return 0;
  }
  std::memcpy(memory + kHeaderBytes + begin, text.data(), text.size());
  header->nextText += text.size() + 1;
  return texts.emplace(text, static_cast<std::uint32_t>(begin)).first->second;
}

std::int32_t Trace::takeCore(bool isCube) {
  const std::scoped_lock lock(mutex);
  std::vector<bool> &cores = busy[isCube ? 1 : 0];
  const auto found = std::ranges::find(cores, false);
  const auto core = found - cores.begin();
  if (found == cores.end()) {
    cores.push_back(true);
  } else {
    *found = true;
  }
  return static_cast<std::int32_t>(core);
}

void Trace::giveBackCore(bool isCube, std::int32_t core) {
  const std::scoped_lock lock(mutex);
  busy[isCube ? 1 : 0][static_cast<std::size_t>(core)] = false;
}

} // namespace tdist::sim
