#include "error.h"

#include <system_error>

namespace tdist::sim {
namespace {

std::string &lastErrorOfThread() {
  thread_local std::string text;
  return text;
}

} // namespace

void setLastError(const char *text) noexcept {
  try {
    lastErrorOfThread() = text;
  } catch (const std::bad_alloc &) {
    lastErrorOfThread().clear();
  }
}

const char *lastError() noexcept { return lastErrorOfThread().c_str(); }

std::string systemErrorText(int error) { return std::generic_category().message(error); }

} // namespace tdist::sim
