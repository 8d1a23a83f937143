"""The pytest plugin: leases, ranks, reports, and that nothing is left of them."""
