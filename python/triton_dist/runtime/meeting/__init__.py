"""The parts of a rendezvous (`triton_dist.runtime.rendezvous`): rank 0, the other ranks, and what goes between them."""
