#include "describe.h"

#include "address.h"
#include "compare.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iomanip>
#include <locale>
#include <optional>
#include <sstream>
#include <string_view>

namespace tdist::sim {
namespace {

struct Quoted {
  std::string_view text;
};

std::ostream &operator<<(std::ostream &stream, Quoted quoted) {
  stream << '"';
  for (const char character : quoted.text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      stream << '\\' << character;
    } else if (code < ' ') {
      stream << "\\u" << std::hex << std::setw(4) << std::setfill('0') << unsigned{code}
             << std::dec;
    } else {
      stream << character;
    }
  }
  return stream << '"';
}

/// The counter that a barrier among PEs waits on; nullptr for other waits.
std::uint64_t ControlArea::*counterOf(const tdist_wait_record &record) {
  switch (record.kind) {
  case TDIST_WAIT_DEVICE_BARRIER:
    return &ControlArea::deviceBarrier;
  case TDIST_WAIT_HOST_BARRIER:
    return &ControlArea::hostBarrier;
  default:
    return nullptr;
  }
}

bool hasArrived(ControlArea &control, std::uint64_t ControlArea::*counter, std::uint64_t epoch) {
  // Relaxed: only a report, nothing is read because of it.
  return std::atomic_ref(control.*counter).load(std::memory_order_relaxed) >= epoch;
}

/// Nanoseconds as seconds, `, "seconds": 0.012345`.
void addSeconds(std::ostream &stream, std::int64_t nanoseconds) {
  constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;
  constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;
  const std::int64_t lasted = std::max<std::int64_t>(nanoseconds, 0) / kNanosecondsPerMicrosecond;
  stream << R"(, "seconds": )" << lasted / kMicrosecondsPerSecond << '.' << std::setw(6)
         << std::setfill('0') << lasted % kMicrosecondsPerSecond;
}

class Writer {
public:
  Writer(const Job &job, std::int32_t pe) : job(job), pe(pe), now(monotonicNanoseconds()) {
    stream.imbue(std::locale::classic());
  }

  void add(const tdist_wait_record &record) {
    stream << separator << '{';
    separator = ", ";
    if (record.by_host != 0) {
      stream << R"("kernel": null, "program": null, "file": null)";
    } else {
      stream << R"("kernel": )" << Quoted{record.kernel} << R"(, "program": [)" << record.program[0]
             << ", " << record.program[1] << ", " << record.program[2] << R"(], "file": )"
             << Quoted{record.file};
    }
    stream << R"(, "line": )" << record.line << R"(, "primitive": )" << Quoted{record.primitive};
    if (record.kind == TDIST_WAIT_WORD) {
      const auto word = addressOf(job.heapBase(pe) + record.offset);
      stream << R"(, "address": )" << record.address << R"(, "pe_offset": )" << record.offset;
      addComparison(record, loadWord(word, record.width));
    } else {
      stream << R"(, "address": null, "pe_offset": null)";
      addBarrier(record);
    }
    stream << R"(, "index": )" << record.index << R"(, "count": )" << record.count
           << R"(, "queued": )" << record.queued << R"(, "width": )" << record.width
           << R"(, "object": )";
    if (*record.object != '\0') {
      stream << Quoted{record.object};
    } else {
      stream << "null";
    }
    stream << R"(, "object_offset": )" << record.object_offset << R"(, "loops": )"
           << (record.kind == TDIST_WAIT_LOOP ? "true" : "false");
    addWriters(record);
    addSeconds(stream, now - record.since_ns);
    stream << '}';
  }

  void addUnlisted(std::uint64_t count) {
    tdist_wait_record record{};
    record.kind = TDIST_WAIT_GRID_BARRIER; // the one that needs nothing looked up
    record.by_host = 1;
    record.since_ns = now;
    std::ostringstream text;
    text << count << " more waits";
    copyText(record.primitive, text.str());
    add(record);
  }

  [[nodiscard]] std::string finish() const { return '[' + stream.str() + ']'; }

private:
  /// The live allocation with the word that is waited for; all zero if there is none.
  [[nodiscard]] AllocationSlot::Range allocationOf(const tdist_wait_record &record) const {
    if (record.kind == TDIST_WAIT_WORD) {
      for (AllocationSlot &slot : job.control(pe).allocations) {
        const AllocationSlot::Range range = slot.range();
        if (range.holds(record.offset, record.width)) {
          return range;
        }
      }
    }
    return {};
  }

  /// Who wrote the word, and who wrote other words of its allocation instead.
  void addWriters(const tdist_wait_record &record) {
    const AllocationSlot::Range allocation = allocationOf(record);
    if (allocation.end == 0) {
      stream << R"(, "allocation": null, "last_writer": null, "near": [])";
      return;
    }
    stream << R"(, "allocation": {"offset": )" << allocation.begin << R"(, "bytes": )"
           << allocation.end - allocation.begin << '}';
    WriteTable table(job.control(pe).writes);
    stream << R"(, "last_writer": )";
    if (const std::optional<Write> last = table.last(record.offset, allocation.since)) {
      addWrite(*last);
    } else {
      stream << "null";
    }
    constexpr std::size_t kMostNear = 8;
    stream << R"(, "near": [)";
    std::size_t told = 0;
    for (const Write &write : table.inRange(allocation.begin, allocation.end, allocation.since)) {
      if (write.offset != record.offset && told < kMostNear) {
        stream << (told++ == 0 ? "" : ", ");
        addWrite(write);
      }
    }
    stream << ']';
  }

  void addWrite(const Write &write) {
    const Author &author = write.author;
    static constexpr PlaceSlot kNowhere{};
    const bool isKnown = author.place < ControlArea::kPlaces;
    const PlaceSlot &place = isKnown ? job.control(author.rank).places[author.place] : kNowhere;
    stream << R"({"rank": )" << author.rank << R"(, "primitive": )" << Quoted{place.primitive};
    if (author.isHost) {
      stream << R"(, "kernel": null, "program": null, "file": null)";
    } else {
      stream << R"(, "kernel": )" << Quoted{place.kernel} << R"(, "program": [)"
             << author.program[0] << ", " << author.program[1] << ", " << author.program[2]
             << R"(], "file": )" << Quoted{place.file};
    }
    stream << R"(, "line": )" << place.line << R"(, "pe_offset": )" << write.offset
           << R"(, "width": )" << write.width << R"(, "add": )" << (write.isAdd ? "true" : "false")
           << R"(, "value": )" << write.value;
    addSeconds(stream, now - write.at);
    stream << '}';
  }

  void addComparison(const tdist_wait_record &record, std::int64_t has) {
    stream << R"(, "compare": )" << Quoted{symbolOf(static_cast<Compare>(record.compare))}
           << R"(, "wanted": )" << record.wanted << R"(, "has": )" << has
           << R"(, "missing_pes": null)";
  }

  void addBarrier(const tdist_wait_record &record) {
    std::uint64_t ControlArea::*const counter = counterOf(record);
    if (counter == nullptr) {
      addComparison(record, record.has);
      return;
    }
    std::ostringstream missing;
    const char *comma = "";
    std::int64_t arrived = 0;
    for (std::int32_t other = 0; other < job.worldSize(); ++other) {
      if (hasArrived(job.control(other), counter, record.epoch)) {
        ++arrived;
      } else {
        missing << comma << other;
        comma = ", ";
      }
    }
    stream << R"(, "compare": ">=", "wanted": )" << record.wanted << R"(, "has": )" << arrived
           << R"(, "missing_pes": [)" << missing.str() << ']';
  }

  const Job &job;
  const std::int32_t pe;
  const std::int64_t now;
  std::ostringstream stream;
  const char *separator = "";
};

} // namespace

std::string describeWaits(const Job &job, std::int32_t pe) {
  ControlArea &control = job.control(pe);
  Writer writer(job, pe);
  for (WaitSlot &slot : control.waits) {
    if (const tdist_wait_record record = slot.read(); record.kind != TDIST_WAIT_NONE) {
      writer.add(record);
    }
  }
  if (const std::uint64_t unlisted =
          std::atomic_ref(control.unlistedWaits).load(std::memory_order_relaxed);
      unlisted != 0) {
    writer.addUnlisted(unlisted);
  }
  return writer.finish();
}

std::string describeFinished(const Job &job, std::int32_t pe) {
  const tdist_wait_record record = job.control(pe).finished.read();
  if (record.since_ns == 0) {
    return "null";
  }
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream << R"({"kernel": )" << Quoted{record.kernel};
  addSeconds(stream, monotonicNanoseconds() - record.since_ns);
  stream << '}';
  return stream.str();
}

} // namespace tdist::sim
