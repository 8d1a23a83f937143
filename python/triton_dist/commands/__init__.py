"""What `python -m triton_dist` offers: one module or package a command, imported when it is called.

A command has `main(arguments: list[str], program: str) -> int`: it parses its arguments, and gives the exit code.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command: the module that has its `main`, and what it does, in a few words."""

    module: str
    summary: str


COMMANDS = {
    "compile": Command("triton_dist.commands.compile", "compile kernels for real SoCs, on a machine without NPUs"),
    "doctor": Command("triton_dist.commands.doctor", "this host and environment: what is wrong, and what mends it"),
    "env": Command("triton_dist.commands.env", "environment variables: what is set, what it does, whether it is right"),
    "npus": Command("triton_dist.commands.npus", "NPUs: which there are, who holds them, who waits for them"),
    "selftest": Command(
        "triton_dist.commands.selftest", "the first thing to run on a host: writes a report to send back"
    ),
}


def main(arguments: list[str]) -> int:
    """Runs the command that the arguments name, and gives its exit code."""
    program = "python -m triton_dist"
    parser = argparse.ArgumentParser(
        prog=program,
        description="Triton kernels that talk to each other across Ascend NPUs, real or simulated.",
        epilog="\n".join(
            ["commands:"]
            + [f"  {name:10}{command.summary}" for name, command in COMMANDS.items()]
            + ["", "examples:"]
            + [
                f"  {program} {example}"
                for example in (
                    "compile add.py --target Ascend910B3",
                    "doctor",
                    "env --check",
                    "env --help",
                    "npus",
                    "selftest",
                )
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of the commands below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    parsed = parser.parse_args(arguments)
    module = importlib.import_module(COMMANDS[parsed.command].module)
    code: int = module.main(parsed.arguments, f"{program} {parsed.command}")
    return code
