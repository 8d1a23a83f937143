"""The pins of docker/versions.toml: whether they are well formed, and whether what repeats them agrees.

`file` reads, checks and changes the file, `repeats` finds and changes its repetitions, and `lock` keeps the locked
requirements. They run in the environment where the package is installed: `nox -s pins`, or `python -m ci.pins`.
"""
