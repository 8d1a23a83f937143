"""Pages that are made from code: one module each, with `PATH` (from the checkout's root) and `render() -> str`.

They run in the environment where the package is installed: `nox -s generate`, or `python -m ci.generated`.
"""
