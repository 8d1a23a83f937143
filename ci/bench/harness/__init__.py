"""How quick the pytest plugin is: whole runs of pytest, against what suites do without it."""

BENCHMARKS = ("warm", "makespan", "overhead")
