// What a launch writes into the file of a trace.

#include "support/kernel.h"
#include "support/ranks.h"
#include "tdist_sim.h"
#include "trace.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace tdist::test {
namespace {

using sim::Trace;

/// A file of events, read as it stands.
class File {
public:
  File() : fd(memfd_create("events", MFD_CLOEXEC)) {}
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() { close(fd); }

  [[nodiscard]] int descriptor() const { return fd; }

  [[nodiscard]] std::vector<Trace::Record> records(std::uint32_t kind) const {
    const auto header = at<Trace::Header>(0);
    EXPECT_EQ(header.magic, Trace::kMagic);
    std::vector<Trace::Record> found;
    for (std::uint64_t i = 1; i < header.nextRecord; ++i) {
      const auto record =
          at<Trace::Record>(Trace::kHeaderBytes + header.textBytes + i * sizeof(Trace::Record));
      if (record.kind == kind) {
        found.push_back(record);
      }
    }
    return found;
  }

  [[nodiscard]] std::string text(std::uint32_t offset) const {
    std::string result;
    for (std::uint64_t i = Trace::kHeaderBytes + offset;; ++i) {
      const char letter = at<char>(i);
      if (letter == '\0') {
        return result;
      }
      result += letter;
    }
  }

private:
  template <class Value> [[nodiscard]] Value at(std::uint64_t offset) const {
    Value value{};
    EXPECT_EQ(pread(fd, &value, sizeof value, static_cast<off_t>(offset)), ssize_t{sizeof value});
    return value;
  }

  int fd;
};

/// Program 1 waits for what program 0 notifies.
void pass(const std::uint64_t *args, const std::int32_t * /*grid*/, const std::int32_t *pid) {
  const auto word = static_cast<std::int64_t>(args[0]);
  if (pid[0] == 0) {
    tdist_sim_notify_i64(word, tdist_sim_my_pe(-1, &kHere), 7, kNotifySet, 0, &kHere);
  } else {
    tdist_sim_wait_i64(word, 1, 7, 0, 1, &kHere);
  }
}

TEST(Trace, HasProgramsTheirCallsAndWhatTheySaw) {
  const LoneJob job;
  const File file;
  const std::uint64_t word = allocate(0, 64);
  ASSERT_EQ(tdist_rt_trace_begin(file.descriptor()), 0);
  launch(pass, {2, 1, 1}, {word});
  tdist_rt_trace_end();
  launch(pass, {2, 1, 1}, {word});

  const std::vector<Trace::Record> programs = file.records(TDIST_TRACE_PROGRAM);
  ASSERT_EQ(programs.size(), 2U) << "the second launch is not traced";
  std::set<std::int32_t> cores;
  for (const Trace::Record &program : programs) {
    EXPECT_EQ(file.text(program.kernel), "test_kernel");
    EXPECT_LE(program.begin, program.end);
    cores.insert(program.core);
  }
  EXPECT_THAT(cores, testing::Each(testing::AllOf(testing::Ge(0), testing::Le(1))));

  const std::vector<Trace::Record> calls = file.records(TDIST_TRACE_CALL);
  ASSERT_EQ(calls.size(), 2U) << "my_pe takes no time";
  for (const Trace::Record &call : calls) {
    EXPECT_EQ(file.text(call.file), "kernel.py");
    EXPECT_EQ(call.line, 41);
    EXPECT_LE(call.begin, call.end);
    const bool isNotify = file.text(call.name) == "notify";
    EXPECT_EQ(call.program[0], isNotify ? 0 : 1);
    EXPECT_EQ(call.address, isNotify ? word : 0);
    EXPECT_EQ(call.value, isNotify ? 7 : 0);
  }
  const std::vector<Trace::Record> seen = file.records(TDIST_TRACE_SEEN);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].address, word);
  EXPECT_EQ(seen[0].value, 7);
}

TEST(Trace, CallsOfTheHostAreWrittenWhileItLasts) {
  const LoneJob job;
  const File file;
  tdist_rt_trace_host("before", 1, 2, nullptr, -1, 0, 0, -1);
  ASSERT_EQ(tdist_rt_trace_begin(file.descriptor()), 0);
  tdist_rt_trace_host("call", 3, 5, nullptr, -1, 16, 0, -1);
  tdist_rt_trace_end();
  const std::vector<Trace::Record> calls = file.records(TDIST_TRACE_HOST);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(file.text(calls[0].name), "call");
  EXPECT_EQ(calls[0].begin, 3);
  EXPECT_EQ(calls[0].end, 5);
  EXPECT_EQ(calls[0].bytes, 16);
}

TEST(Trace, AFileThatCannotGrowIsRefused) {
  const LoneJob job;
  EXPECT_EQ(tdist_rt_trace_begin(-1), -1);
  EXPECT_THAT(tdist_rt_last_error(),
              testing::HasSubstr("the file of traced events cannot be made"));
}

} // namespace
} // namespace tdist::test
