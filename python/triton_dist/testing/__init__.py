"""The pytest plugin for multi-rank tests: NPUs leased per test, ranks forked ready, failures told rank by rank.

`plugin` holds the hooks and the fixture; `leases` decides who has which NPU of the host; `ranks` starts, watches
and ends the processes of a test; `report` puts what happened into words; `spawned` does the same for suites that
start their ranks themselves.
"""
