"""aclshmem's table of cycles: what the distributed calls of one rank took, by program and source line."""

from __future__ import annotations

from pathlib import PurePath

from triton_dist.trace.events import Kind, RankEvents

# aclshmem counts with the NPU's system counter, which runs at 50 MHz on A2 and A3.
NANOSECONDS_A_CYCLE = 20

_HEAD = ("BlockID", "FrameID", "Cycles", "Count", "AvgTime(us)", "")


def table(rank: RankEvents) -> str:
    """One row for each program and source line that made a distributed call that has ended.

    BlockID is the program's number (all axes, where there are several), FrameID the line in the kernel's file.
    """
    sums: dict[tuple[tuple[int, int, int], str, int, str], list[int]] = {}
    for event in rank.events:
        if event.kind is Kind.CALL and event.end:
            key = (event.program, event.file, event.line, event.name)
            total = sums.setdefault(key, [0, 0])
            total[0] += event.end - event.begin
            total[1] += 1
    rows = [_HEAD]
    for (program, file, line, name), (nanoseconds, count) in sorted(sums.items()):
        rows.append(
            (
                str(program[0]) if program[1:] == (0, 0) else ",".join(map(str, program)),
                str(line),
                str(nanoseconds // NANOSECONDS_A_CYCLE),
                str(count),
                f"{nanoseconds / count / 1000:.3f}",
                f"{name} {PurePath(file).name}:{line}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[5]]) for row in rows
    ]
    return "\n".join([f"cycles of PE {rank.rank}", *(line.rstrip() for line in lines)])
