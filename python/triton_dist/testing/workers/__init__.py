"""Workers of pytest-xdist that are forked, instead of importing by themselves what all of them import.

The process that becomes the zygote of ranks has torch and Triton. `maker` is what it does for workers, and `gateways`
is how the controlling process asks for them.
"""
