"""From Triton IR to a binary: stages, tools, caches, and the hook into Triton."""
