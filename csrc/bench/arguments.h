// The one argument of a benchmark's program: how many rounds.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tdist::bench {

inline long roundsFrom(int argc, char **argv) {
  const long rounds = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 0;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
    std::exit(2);
  }
  return rounds;
}

} // namespace tdist::bench
