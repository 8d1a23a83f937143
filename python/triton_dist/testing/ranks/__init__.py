"""Rank processes: forked for each test from a process that has imported everything and run nothing.

    pytest (or an xdist worker) ── zygote ── rank 0 … rank n-1

`zygote` is the process that forks, `client` pytest's side of it, `job` what pytest does for one test from the fork
to the last process gone, `rank` what a rank does, with `modules` and `rewriting` to find the test's code and
`watcher` to answer the questions of `inquiry` while it runs; `record` is what pytest knows of it. `adopted` is for
ranks that a suite starts itself. `wire` carries messages and descriptors between them; `processes` holds
what Linux offers to end processes for sure.
"""
