"""Build, tests and checks, all in one environment: the active one, else `.venv` in this checkout.

    nox -s build                        csrc and an editable install of the package
    nox -s test-multirank               tests that run in several ranks on simulated NPUs
    nox                                 lint, tests and sanitize

Where nox is not installed, `ci/nox` runs it all the same. Further sessions: `nox --list`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import nox

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "python")]

from ci import benchmarks, installation, linters, native_tests, python_tests, report, wheels
from ci import soak as soaking
from ci.environment import own_arguments
from ci.images import build as image_build
from ci.images import run as image_run
from ci.images import wheelhouse

nox.needs_version = ">=2024.4"
nox.options.sessions = ["lint", "tests", "sanitize"]
nox.options.default_venv_backend = "none"


@nox.session
def build(session: nox.Session) -> None:
    """Builds csrc and installs the package, editable, with all that it needs.

    nox -s build                        into the active environment, else .venv
    LLVM_SYSPATH=/opt/llvm nox -s build
    nox -s build -- --system            into the Python that runs nox, for images
    nox -s build -- --download          keeps the locked wheels in build/wheelhouse, and installs nothing
    nox -s build -- --offline           downloads nothing, and takes what is missing from there
    """
    if installation.DOWNLOAD_FLAG in session.posargs:
        wheelhouse.fill_sim(session, dry=False)
        return
    installation.ensure(session)


@nox.session(name="test-multirank")
def test_multirank(session: nox.Session) -> None:
    """Runs the multi-rank tests, side by side, after a check of the environment; what follows `--` goes to pytest.

    nox -s test-multirank
    nox -s test-multirank -- -n 4 -k ring
    """
    installed = installation.ensure(session)
    python_tests.examine(session, installed)
    python_tests.run(session, installed, [python_tests.root_folder("multirank")])


@nox.session
def tests(session: nox.Session) -> None:
    """Runs all tests: lit, C++ unit tests, and all of python/test; what follows `--` goes to pytest.

    nox -s tests
    nox -s tests -- -k env
    """
    installed = installation.ensure(session)
    report.run_each(
        session,
        lambda: native_tests.run_lit(session, installed),
        lambda: native_tests.run_unit(session, installed),
        lambda: python_tests.run(session, installed, [python_tests.root_folder()]),
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Checks style and types of everything; with `--fix`, formats instead of complaining.

    nox -s lint
    nox -s lint -- --fix
    """
    installed = installation.ensure(session)
    linters.run_all(session, installed)


@nox.session(name="compile-check")
def compile_check(session: nox.Session) -> None:
    """Compiles the project's kernels for real SoCs, without an NPU; what follows `--` chooses, or writes JSON.

    nox -s compile-check
    nox -s compile-check -- --json rows.json
    nox -s compile-check -- --target Ascend910B3 -k ring
    """
    installed = installation.ensure(session)
    with report.step(session.name, "kernels"):
        installed.environment.run(session, "-m", "ci.compile_check", *own_arguments(session))


@nox.session
def generate(session: nox.Session) -> None:
    """Writes the pages that are made from code, such as docs/environment.md; `--check` says which are stale instead.

    nox -s generate
    nox -s generate -- --check
    """
    installed = installation.ensure(session)
    linters.run_generator(session, installed, check=linters.CHECK_FLAG in session.posargs)


@nox.session
def pins(session: nox.Session) -> None:
    """Checks that everything agrees with docker/versions.toml, or changes a pin wherever it is repeated.

    nox -s pins -- --check
    nox -s pins -- --bump llvm 19.1.7
    nox -s pins -- --lock               the requirements of the image `sim`, with hashes
    """
    installed = installation.ensure(session)
    linters.run_pins(session, installed, own_arguments(session) or [linters.CHECK_FLAG])


@nox.session
def sanitize(session: nox.Session) -> None:
    """Runs the runtime's unit tests under the address, undefined-behaviour and thread sanitizers.

    nox -s sanitize
    """
    installation.ensure(session)
    report.run_each(
        session, *(partial(native_tests.run_sanitized, session, sanitizers) for sanitizers in native_tests.SANITIZERS)
    )


@nox.session
def soak(session: nox.Session) -> None:
    """Repeats what chance decides: multi-rank tests in the strict mode, and jobs on a busy machine.

    nox -s soak
    nox -s soak -- strict --runs 5
    nox -s soak -- false-reports --busy-runs 100
    """
    soaking.run(session, installation.ensure(session))


@nox.session
def aarch64(session: nox.Session) -> None:
    """Builds the runtime for aarch64 and runs its unit tests under qemu.

    nox -s aarch64
    """
    native_tests.run_aarch64(session)


@nox.session
def wheel(session: nox.Session) -> None:
    """Builds a wheel that holds all that it needs, checks it with auditwheel, and tries it in a fresh environment.

    nox -s wheel                        build/wheels/triton_dist-…-manylinux….whl
    """
    wheels.build(session, installation.ensure(session))


@nox.session(name="docker-build")
def docker_build(session: nox.Session) -> None:
    """Builds a container image.

    nox -s docker-build -- --target sim
    nox -s docker-build -- --target sim --dry-run
    """
    image_build.run(session)


@nox.session
def docker(session: nox.Session) -> None:
    """Runs a session inside the image, with this checkout and what of this host the session needs.

    nox -s docker -- test-multirank
    nox -s docker -- --dry-run tests -k env
    """
    image_run.run(session)


@nox.session(name="test-images")
def test_images(session: nox.Session) -> None:
    """Really builds the images, the one for NPUs upon a stand-in for CANN, and really runs a session in one.

    nox -s test-images
    """
    installed = installation.ensure(session)
    python_tests.run_files(session, installed, [python_tests.root_folder("images", "real_images.py")])


@nox.session
def bench(session: nox.Session) -> None:
    """Measures the simulator, each row against its peer in one run; what follows `--` chooses rows.

    nox -s bench
    nox -s bench -- pingpong fibers --json rows.json
    """
    installed = installation.ensure(session)
    benchmarks.run(session, installed)
