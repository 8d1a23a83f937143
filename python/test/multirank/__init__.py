"""Kernels that talk to each other, on simulated NPUs, in worlds of 2, 4 and 8 ranks."""
