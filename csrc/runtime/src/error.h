// Errors of the runtime, and how their text reaches the C interface.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tdist::sim {

class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The parts, one behind the other, as text.
template <class... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic()); // no thousands separators, whatever the process has set
  (stream << ... << parts);
  return stream.str();
}

/// What tdist_rt_last_error() gives on this thread.
void setLastError(const char *text) noexcept;
const char *lastError() noexcept;

/// "Bad file descriptor" for EBADF.
std::string systemErrorText(int error);

/// Runs `body`; what it throws becomes this thread's last error, and the result `failed`.
template <class Result, class Body> Result guarded(Result failed, const Body &body) noexcept {
  try {
    return body();
  } catch (const std::exception &error) {
    setLastError(error.what());
  } catch (...) {
    setLastError("the runtime failed in a way it does not know");
  }
  return failed;
}

} // namespace tdist::sim
