"""Symbols that a kernel calls by extern_call: whether anything has them, as far as that can be known without CANN."""

from __future__ import annotations

import re
from pathlib import Path

from triton_dist.compiler.npu import device_library
from triton_dist.compiler.npu.diagnosis import at
from triton_dist.compiler.npu.locations import Locations, line_of

_CALL = re.compile(r'tt\.extern_elementwise .*?libpath = "(?P<path>[^"]*)".*?symbol = "(?P<symbol>\w+)"')
_OURS = "tdist_"


def unknown(ttir: str) -> str:
    """What is wrong with the first symbol that no device library has, at the kernel's line; "" where all are known.

    Args:
        ttir: Triton IR with locations.
    """
    locations = Locations(ttir)
    for line in ttir.splitlines():
        call = _CALL.search(line)
        if call is None or call["symbol"].startswith(_OURS):
            continue
        symbol, path = call["symbol"], call["path"]
        if path and device_library.has(symbol, Path(path)):
            continue
        if not path and (symbol.startswith("aclshmem") or device_library.has(symbol)):
            continue
        where = f"{path} has not" if path else "neither aclshmem nor the library that is installed has"
        text = (
            f"the kernel calls {symbol}, which {where}: give extern_call the path of a bitcode file that defines "
            f"_mlir_ciface_{symbol}, or name one by TRITON_DIST_DEVICE_LIBRARY"
        )
        file, _, row = line_of(locations.place(line)).rpartition(":")
        return at(file, int(row), text) if row.isdecimal() else text
    return ""
