// A stack for signal handlers.
#pragma once

namespace tdist::sim {

/// Gives the calling thread a stack for signal handlers, once, unless it has one: a kernel that
/// overflows its own stack could otherwise not be reported by faulthandler.
void ensureAlternateStack() noexcept;

} // namespace tdist::sim
