#include "stack.h"

#include "error.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace tdist::sim {
namespace {

std::size_t guardBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

} // namespace

Stack::Stack() {
  const std::size_t size = guardBytes() + kUsableBytes;
  void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error(concat("no stack for a kernel's program: ", systemErrorText(errno),
                       "; the process has too many mappings (vm.max_map_count) or no memory"));
  }
  lowest = static_cast<std::byte *>(mapped) + guardBytes();
  if (mprotect(mapped, guardBytes(), PROT_NONE) != 0) {
    const int error = errno;
    munmap(mapped, size);
    throw Error(concat("the stack of a kernel's program cannot be guarded: ",
                       systemErrorText(error), " (vm.max_map_count?)"));
  }
}

Stack::~Stack() { munmap(lowest - guardBytes(), guardBytes() + kUsableBytes); }

} // namespace tdist::sim
