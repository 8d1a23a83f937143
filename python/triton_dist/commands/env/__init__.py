"""`python -m triton_dist env`: what is set, from where, what it does, and whether it makes sense."""

from __future__ import annotations

import argparse
import sys

from triton_dist import env
from triton_dist.commands.env import check, explain, listing
from triton_dist.env.addresses import parse_ip_port

_EXAMPLES = """\
examples:
  {program}                                     all variables: value, where it comes from, meaning
  {program} --set                               only those that are set
  {program} explain SHMEM_UID_SESSION_ID        everything about one
  {program} --check                             typos, contradictions, bad values, variables without effect
  {program} --check --init uid                  … of a program that initialises by unique id
  {program} --check --ip-port tcp://10.0.0.1:1  … of one that initialises by this ip_port
  {program} --json                              for programs; also with explain and --check
  {program} --markdown                          the tables of docs/environment.md

exit codes:
  0  nothing was found, or nothing was to be checked
  1  --check found something; with --allow-hints: an error, hints are only printed
  2  wrong usage, or explain does not know the name
"""


def main(arguments: list[str], program: str) -> int:
    """Runs the command; see _EXAMPLES for its exit codes."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Environment variables: what is set, from where, what each does, and whether they make sense.",
        epilog=_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", nargs="?", choices=["explain"], help="explain NAME: everything about one variable")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a variable, for explain")
    parser.add_argument("--set", action="store_true", dest="only_set", help="only the variables that are set")
    parser.add_argument("--check", action="store_true", help="look for what is wrong with the variables that are set")
    parser.add_argument("--backend", choices=["sim", "ascend"], help="check for this backend, not the active one")
    parser.add_argument("--init", choices=[env.UNIQUE_ID, env.IP_PORT], help="check for this kind of initialisation")
    parser.add_argument("--ip-port", metavar="ADDRESS", help="check for initialisation by this ip_port")
    parser.add_argument("--allow-hints", action="store_true", help="hints do not make the exit code 1")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    parsed = parser.parse_args(arguments)

    if (parsed.action is None) != (parsed.name is None):
        parser.error("explain takes the NAME of a variable")
    if parsed.action and (parsed.check or parsed.only_set or parsed.markdown):
        parser.error("explain goes with --json alone")
    if parsed.check and (parsed.only_set or parsed.markdown):
        parser.error("--check goes neither with --set nor with --markdown")
    if not parsed.check and (parsed.backend or parsed.init or parsed.ip_port or parsed.allow_hints):
        parser.error("--backend, --init, --ip-port and --allow-hints say how to --check")
    if parsed.ip_port and parsed.init == env.UNIQUE_ID:
        parser.error("initialisation by unique id has no ip_port")
    if parsed.ip_port:
        try:
            parse_ip_port(parsed.ip_port)
        except ValueError as refusal:
            parser.error(str(refusal))

    if parsed.action:
        return explain.run(parsed.name, as_json=parsed.json)
    if parsed.check:
        initialisation = env.IP_PORT if parsed.ip_port else parsed.init
        situation = check.Situation.of_this_process(parsed.backend, initialisation, parsed.ip_port)
        return check.run(situation, as_json=parsed.json, allow_hints=parsed.allow_hints)
    if parsed.json:
        listing.print_json(only_set=parsed.only_set)
    elif parsed.markdown:
        listing.print_markdown(only_set=parsed.only_set)
    else:
        listing.print_text(only_set=parsed.only_set, colours=sys.stdout.isatty())
    return 0
