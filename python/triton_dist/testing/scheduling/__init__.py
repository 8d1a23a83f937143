"""In which order the tests of a run go to pytest-xdist's workers, so that its NPUs are never idle for want of a test.

`demand` says how many NPUs a test wants and `history` how long it took before; `order` makes a plan of that, and
`xdist` hands the tests out by it. `link` brings what only the workers know to the process that plans.
"""
