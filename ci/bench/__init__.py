"""What `nox -s bench` measures, each row against its peer in one run.

A group is a package here, each of its modules with a function `rows` gives rows. A module that is not named for a row
holds the programs that others start.
"""
