"""From linalg IR to a binary for Ascend NPUs: our stage in triton-ascend's backend, and what is known of its result."""
