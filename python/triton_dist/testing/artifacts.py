"""All that is known of a failed multi-rank test, as files: --dist-artifacts=DIR.

DIR/test_ring.py--test_ring-4/report.txt                 what pytest shows
                              rank-0.stdout.txt          … and what it leaves out
                              rank-0.native-stacks.txt   at a time-out
"""

from __future__ import annotations

import re
from pathlib import Path

from triton_dist.testing.ranks.record import JobRecord

# Of a folder's name, in characters.
_LONGEST_NAME = 120


def write(directory: Path, nodeid: str, report: str, record: JobRecord, more: dict[str, str]) -> Path:
    """Writes the files of one test; returns their folder. A later job of the same test replaces those of an earlier.

    Args:
        report: the failure, in words.
        more: further texts, by file name.

    Raises:
        OSError: they cannot be written.
    """
    folder = directory / folder_name(nodeid)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"report.txt": report, **more}
    for rank in record.ranks:
        for name, text in (
            ("stdout", rank.stdout),
            ("stderr", rank.stderr),
            ("traceback", rank.text),
            ("stacks", rank.stacks or rank.crash),
            ("native-stacks", rank.native),
        ):
            texts[f"rank-{rank.rank}.{name}.txt"] = text
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text if text.endswith("\n") else f"{text}\n")
    return folder


def folder_name(nodeid: str) -> str:
    """A name for the files of a test, the same on every system."""
    return re.sub(r"[^\w.-]+", "-", nodeid.replace("::", "--"))[-_LONGEST_NAME:].strip("-")
