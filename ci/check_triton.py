"""Runs in the environment itself: which triton is imported, and does it come from triton-ascend?

Two distributions ship a directory `triton`, and the one installed last wins without a word. What counts
is therefore the content of the files that are imported, held against triton-ascend's own record.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

MEND = "mend: pip uninstall -y triton && pip install --force-reinstall --no-deps triton-ascend=={version}"


def main() -> str:
    """The line for the user; raises SystemExit with a line that says how to mend it."""
    try:
        distribution = importlib.metadata.distribution("triton-ascend")
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit("triton-ascend is not installed: run nox -s build") from None
    mend = MEND.format(version=distribution.version)
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise SystemExit(f"triton cannot be imported, a directory without triton/__init__.py at most; {mend}")
    for file in distribution.files or []:
        if str(file) == "triton/__init__.py" or str(file).startswith("triton/_C/libtriton"):
            imported = Path(spec.origin).parents[1] / str(file)
            if not imported.is_file() or (file.hash and _sha256(imported) != file.hash.value):
                raise SystemExit(
                    f"triton is imported from {spec.origin}, and {file} there is not triton-ascend's; {mend}"
                )

    import triton
    from triton.backends import backends

    if "ascend" not in backends and "npu" not in backends:
        raise SystemExit(f"triton {triton.__version__} at {spec.origin} has no Ascend backend; {mend}")
    return f"triton {triton.__version__} is imported from triton-ascend {distribution.version} at {spec.origin}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


if __name__ == "__main__":
    print(main())
    sys.stdout.flush()
