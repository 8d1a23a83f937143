"""What happened on simulated NPUs, and when: timelines (TRITON_DIST_TRACE) and profiles (SHMEM_CYCLE_PROF_PE)."""
