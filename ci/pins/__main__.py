"""Checks the pins of docker/versions.toml and whatever repeats them, or changes one everywhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ci.pins import lock, repeats
from ci.pins.file import PATH, PinError, Pins

ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = """\
examples:
  python -m ci.pins --check                  fails where something disagrees with docker/versions.toml
  python -m ci.pins --bump torch 2.14.0      changes the pin and what repeats it, and locks the requirements again
  python -m ci.pins --bump ascend.cann 9.0.0 a pin whose bare name stands in two tables
  python -m ci.pins --lock                   locks the requirements again

exit codes:
  0  everything agrees, or was changed
  1  something disagrees, or could not be changed
  2  wrong usage
"""


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    parser = argparse.ArgumentParser(
        prog="python -m ci.pins",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="write nothing; fail where something disagrees")
    action.add_argument("--bump", nargs=2, metavar=("NAME", "VERSION"), help="change a pin and what repeats it")
    action.add_argument("--lock", action="store_true", help="lock the requirements again")
    parsed = parser.parse_args(arguments)
    try:
        pins = Pins(root)
        if parsed.check:
            return _check(root, pins)
        if parsed.bump:
            _bump(root, pins, *parsed.bump)
        else:
            lock.write(root, pins)
            print(f"{lock.PATH} is written")
    except PinError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _check(root: Path, pins: Pins) -> int:
    found = list(pins.faults())
    if not found:
        found = [*map(str, repeats.disagreements(root, pins)), *lock.faults(root, pins)]
    for each in found:
        print(each)
    if found:
        print(f"{len(found)} disagree with {PATH}: change the pin with `nox -s pins -- --bump NAME VERSION`, ")
        print("or mend the file that is named; `nox -s pins -- --lock` locks the requirements again")
        return 1
    print(f"{PATH} is well formed, and everything that repeats it agrees")
    return 0


def _bump(root: Path, pins: Pins, name: str, version: str) -> None:
    full = pins.full_name(name)
    old = pins.value(full)
    pins.set(full, version)
    pins.write()
    print(f"{full}: {old} is now {pins.value(full)}")
    for file in (PATH, *repeats.rewrite(root, pins)):
        print(f"{file} is changed")
    if not lock.is_current(root, pins):
        lock.write(root, pins)
        print(f"{lock.PATH} is written")


if __name__ == "__main__":
    sys.exit(main())
