"""Element types of the typed function families (`aclshmem_<type>_<operation>`)."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

_SIGNED: dict[int, Any] = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
_SIGNED_CODE = {1: "=b", 2: "=h", 4: "=i", 8: "=q"}


@dataclass(frozen=True)
class Kind:
    """One element type.

    Attributes:
        name: in function names.
        code: in `struct`.
        waits: whether the families of waits have it.
    """

    name: str
    code: str
    waits: bool = True

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return struct.calcsize(self.code)

    def raw(self, address: int) -> int:
        """The bits of the element at `address`, read at once, as a signed integer."""
        value: int = _SIGNED[self.size].from_address(address).value
        return value

    def from_raw(self, raw: int) -> float:
        """The value that has these bits."""
        value: float = struct.unpack(self.code, struct.pack(_SIGNED_CODE[self.size], raw))[0]
        return value

    def read(self, address: int) -> float:
        """The element at `address`."""
        return self.from_raw(self.raw(address))

    def to_raw(self, value: float, function: str) -> int:
        """The bits of `value`.

        Raises:
            TypeError: it is no number of this type.
            ValueError: it is out of range.
        """
        try:
            raw: int = struct.unpack(_SIGNED_CODE[self.size], struct.pack(self.code, value))[0]
        except (struct.error, OverflowError) as error:
            wanted = ValueError if isinstance(value, (int, float)) else TypeError
            raise wanted(f"{function}: {value!r} is no {self.name}: {error}") from None
        return raw


KINDS = (
    Kind("float", "=f"),
    Kind("double", "=d", waits=False),
    Kind("int8", "=b"),
    Kind("int16", "=h"),
    Kind("int32", "=i"),
    Kind("int64", "=q"),
    Kind("uint8", "=B"),
    Kind("uint16", "=H"),
    Kind("uint32", "=I"),
    Kind("uint64", "=Q"),
    Kind("char", "=b"),
)
"""Types of the host API."""
