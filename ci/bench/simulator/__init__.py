"""How quick the simulated NPUs are."""

BENCHMARKS = ("pingpong", "launch", "fibers", "ranks")
