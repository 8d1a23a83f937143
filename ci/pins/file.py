"""docker/versions.toml itself: its schema, and the rules that a schema cannot say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import tomlkit
from tomlkit.items import Array, String

PATH = "docker/versions.toml"
SCHEMA_PATH = "docker/versions.schema.json"


class PinError(Exception):
    """A pin cannot be read or changed; the message is one line for the user."""


class Pins:
    """The pins of a checkout.

    Attributes:
        path: the file.
        tables: its tables, as plain types.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / PATH
        self._schema = root / SCHEMA_PATH
        self._document = tomlkit.parse(self.path.read_text())

    @property
    def tables(self) -> dict[str, Any]:
        plain: dict[str, Any] = self._document.unwrap()
        return plain

    def value(self, name: str) -> str | list[str]:
        """The pin called `table.name`."""
        table, _, key = name.partition(".")
        found: str | list[str] = self.tables[table][key]
        return found

    def faults(self) -> Iterator[str]:
        """What is wrong with the file, one line each."""
        validator = jsonschema.Draft202012Validator(json.loads(self._schema.read_text()))
        wrong = [f"{PATH}: {error.json_path[2:] or 'the file'}: {error.message}" for error in _errors(validator, self)]
        yield from wrong or self._contradictions()

    def _contradictions(self) -> Iterator[str]:
        tables = self.tables
        ascend, triton = tables["ascend"], tables["python"]["triton-ascend"]
        for combination in tables["combinations"]:
            for chip in set(combination["chips"]) - set(tables["chips"]):
                yield f"{PATH}: a combination names the chip {chip}, and the table [chips] does not"
        if not any(_allows(each, ascend, triton) for each in tables["combinations"]):
            chosen = ", ".join(f"{name} {ascend[name]}" for name in ("cann", "torch_npu", "python"))
            yield f"{PATH}: no combination allows triton-ascend {triton} with {chosen}, as [ascend] has them"
        if ascend["torch_npu"].split(".post")[0] != ascend["torch"]:
            yield f"{PATH}: torch_npu {ascend['torch_npu']} is not for torch {ascend['torch']}"
        supported = tables["python"]["supported"]
        for name, version in (
            ("ascend.python", ascend["python"]),
            ("images.sim-python", tables["images"]["sim-python"]),
        ):
            if version not in supported:
                yield f"{PATH}: {name} is {version}, and python.supported has {', '.join(supported)}"

    def full_name(self, name: str) -> str:
        """The `table.name` that `name` means; a bare name must stand in one table only.

        Raises:
            PinError: there is no such pin, or there are several.
        """
        known = [f"{table}.{key}" for table, keys in self.tables.items() if isinstance(keys, dict) for key in keys]
        meant = [full for full in known if name in (full, full.partition(".")[2])]
        if len(meant) != 1:
            which = f"choose one of {', '.join(meant)}" if meant else f"known are {', '.join(known)}"
            raise PinError(f"{name} names {'several pins' if meant else 'no pin'} of {PATH}: {which}")
        return meant[0]

    def set(self, name: str, version: str) -> None:
        """Gives a pin another value; that of a list has commas. `write` keeps it.

        Raises:
            PinError: the file would be wrong with it.
        """
        table, _, key = name.partition(".")
        section: Any = self._document[table]
        if isinstance(section[key], Array):
            section[key] = [part.strip() for part in version.split(",")]
        else:
            assert isinstance(section[key], String)
            section[key] = version
        if wrong := list(self.faults()):
            raise PinError(f"{name} = {version!r} cannot be: {'; '.join(wrong)}")

    def write(self) -> None:
        """Writes the file, comments and order as they were."""
        self.path.write_text(tomlkit.dumps(self._document))


def _errors(validator: jsonschema.Draft202012Validator, pins: Pins) -> list[jsonschema.ValidationError]:
    return sorted(validator.iter_errors(pins.tables), key=lambda error: error.json_path)


def _allows(combination: dict[str, Any], ascend: dict[str, str], triton: str) -> bool:
    return (
        combination["triton-ascend"] == triton
        and combination["cann"] == ascend["cann"]
        and ascend["torch_npu"] in combination["torch_npu"]
        and ascend["python"] in combination["python"]
    )
