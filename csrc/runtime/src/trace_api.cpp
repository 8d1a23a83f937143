// The interface for host code, as far as it is about traces. See the header for what each function
// does.

#include "address.h"
#include "error.h"
#include "job.h"
#include "tdist_sim.h"
#include "trace.h"

#include <memory>

using namespace tdist::sim;

int tdist_rt_trace_begin(std::int32_t fd) {
  return guarded(-1, [&] {
    const std::shared_ptr<Job> job = requireJob("trace");
    Trace::install(std::make_shared<Trace>(fd, job->rank(), job->worldSize(),
                                           addressOf(job->heapBase(job->rank()))));
    return 0;
  });
}

void tdist_rt_trace_end(void) { Trace::install(nullptr); }

void tdist_rt_trace_host(const char *name, std::int64_t begin_ns, std::int64_t end_ns,
                         const void *addr, std::int32_t pe, std::int64_t bytes, std::int64_t value,
                         std::int32_t op) {
  const std::shared_ptr<Trace> trace = Trace::current();
  if (!trace) {
    return;
  }
  Trace::Record record{};
  record.name = trace->text(name);
  record.begin = begin_ns;
  record.end = end_ns;
  record.address = addressOf(addr);
  record.pe = pe;
  record.bytes = bytes;
  record.value = value;
  record.op = op;
  trace->add(TDIST_TRACE_HOST, record);
}
