"""docs/environment.md: every environment variable, every compiler option, and the examples that tests run."""

from __future__ import annotations

from pathlib import Path

from triton_dist import env
from triton_dist.commands.env import tables
from triton_dist.compiler import options

PATH = "docs/environment.md"

# The examples run as tests, exactly as they stand in these files.
_EXAMPLES = Path(__file__).resolve().parents[2] / "python" / "test" / "seed"


def render() -> str:
    """The whole page."""
    return _PAGE.format(
        setting=_example("run.sh"),
        run=tables.of_variables(env.variables(env.RUN)),
        build=tables.of_variables(v for v in env.variables(env.BUILD) if v.acts_on != env.NOTHING),
        no_counterpart=tables.of_variables(v for v in env.variables(env.BUILD) if v.acts_on == env.NOTHING),
        kernels=_example("distributed_kernels.py"),
        options=_options(),
    )


def _options() -> str:
    return tables.markdown(
        ("option", "type", "default", "allowed", "meaning", "on simulated NPUs"),
        [(f"`{o.name}`", o.kind, f"`{o.default}`", o.allowed, o.meaning, o.effect) for o in options.OPTIONS.values()],
    )


def _example(name: str) -> str:
    return (_EXAMPLES / name).read_text().rstrip()


_PAGE = """\
<!-- Written by `nox -s generate` from python/triton_dist/env and python/triton_dist/compiler/options.py. -->

# Environment variables and compiler options

Those of triton-ascend, aclshmem, CANN, HCCL and torch apply as they are; the ones that start with `TRITON_DIST_` are
this project's own. A variable is set before the program starts:

```sh
{setting}
```

A variable that is set to nothing counts as not set. A value that is not allowed ends the build at once, and a program
when it comes to what the variable is for, with one line that names the variable, the value and what is allowed.
`env --check` finds all of them before a program starts.

```console
$ python -m triton_dist env                                # all variables: value, where it comes from, meaning
$ python -m triton_dist env --set                          # those that are set
$ python -m triton_dist env explain SHMEM_UID_SESSION_ID   # everything about one
$ python -m triton_dist env --check                        # typos, contradictions, bad values, no effect
$ python -m triton_dist env --check --init uid             # for a program that initialises by unique id
$ python -m triton_dist env --help                         # exit codes, JSON, Markdown
```

`nox -s test-multirank` runs the check first. A bad value ends it; hints are only printed.

## Run time

Set while a program runs. "acts on" says where a variable has an effect: on simulated NPUs, on hardware, or on both.
"since" is the earliest release in whose files or documentation the variable was found.

[rendezvous.md](rendezvous.md) says which of them decide where the ranks of a job meet.

{run}

## Build time

Read by `nox -s build` and by `pip install -e ./python`; see [build.md](../build.md). A value that is not allowed is
refused before anything is built.

{build}

These variables of upstream have no counterpart here. A build prints one line for each that is set.

{no_counterpart}

## Compiler options

A compiler option concerns one kernel. It is given as a keyword of the launch, in `triton.Config`, or by
`@triton.autotune`. An unknown option, or a value of another type, is an error that names the nearest known option.

{options}

## Kernels

Distributed operations of `triton_dist.language` in kernels, as tests run them:

```python
{kernels}
```
"""
