"""Every environment variable that this project acts on: one typed descriptor each.

This is the only module that reads the environment:

    from triton_dist import env

    env.TRITON_DIST_SIM_NPUS.get()                      # 8
    env.apply({"TRITON_DIST_BACKEND": "sim"})           # this process
    env.child_environ(RANK=0, TRITON_DIST_SESSION=None) # a child's, with one variable taken out

Values are read when they are asked for, never at import. A variable that is set to nothing counts as
not set. The module is imported at interpreter start and by the build backend, so it needs nothing but
`os`, and is quick.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Generic, TypeVar

    T = TypeVar("T", covariant=True)
    D = TypeVar("D")
else:
    T = D = None

    class Generic:
        """Stands in for `typing.Generic`: importing `typing` would take longer than this module."""

        def __class_getitem__(cls, parameter: object) -> type:
            return cls


TRUE_WORDS = ("ON", "1", "YES", "TRUE", "Y")
FALSE_WORDS = ("OFF", "0", "NO", "FALSE", "N")

RUN = "run"
BUILD = "build"


class EnvironmentVariableError(ValueError):
    """A variable holds what it may not; the message names it, its value and what is allowed."""


class Variable(Generic[T]):
    """One environment variable.

    Attributes:
        name: as it stands in the environment.
        owner: the project that defined it: ours, or the one it is inherited from.
        category: `RUN` (read while a program runs) or `BUILD` (read by build and installation).
        kind: the type in a word, for tables: flag, integer, seconds, text, choice, directory, integers.
        allowed: the values allowed, in words.
        default: the default, in words.
        meaning: what it does, in one sentence.
    """

    __slots__ = (
        "name",
        "owner",
        "category",
        "kind",
        "allowed",
        "default",
        "meaning",
        "_parse",
        "_make_default",
    )

    def __init__(
        self,
        name: str,
        *,
        owner: str,
        category: str,
        kind: str,
        allowed: str,
        default: str,
        meaning: str,
        parse: Callable[[str], T],
        make_default: Callable[[], T],
    ) -> None:
        self.name = name
        self.owner = owner
        self.category = category
        self.kind = kind
        self.allowed = allowed
        self.default = default
        self.meaning = meaning
        self._parse = parse
        self._make_default = make_default

    def __repr__(self) -> str:
        return f"<environment variable {self.name}: {self.kind}>"

    def is_set(self) -> bool:
        """Whether the environment holds a value that is not blank."""
        return bool(os.environ.get(self.name, "").strip())

    def get(self) -> T:
        """The value in the environment, or the default.

        Raises:
            EnvironmentVariableError: the value is not one of those allowed.
        """
        return self.parse(os.environ.get(self.name, ""))

    def parse(self, text: str) -> T:
        """The value that `text` stands for; blank text stands for the default.

        Raises:
            EnvironmentVariableError: the value is not one of those allowed.
        """
        text = text.strip()
        if not text:
            return self._make_default()
        try:
            return self._parse(text)
        except ValueError:
            raise EnvironmentVariableError(f"{self.name}={text!r} is not allowed: it takes {self.allowed}") from None


def _flag(name: str, *, owner: str, category: str, default: D, meaning: str) -> Variable[bool | D]:
    def parse(text: str) -> bool:
        if text.upper() in TRUE_WORDS:
            return True
        if text.upper() in FALSE_WORDS:
            return False
        raise ValueError(text)

    return Variable(
        name,
        owner=owner,
        category=category,
        kind="flag",
        allowed=f"{' '.join(TRUE_WORDS)} or {' '.join(FALSE_WORDS)}, in any case",
        default={True: "on", False: "off"}.get(default, "decided by what is there"),  # type: ignore[call-overload]
        meaning=meaning,
        parse=parse,
        make_default=lambda: default,
    )


def _integer(
    name: str,
    *,
    owner: str,
    category: str,
    default: D,
    meaning: str,
    least: int,
    most: int | None = None,
) -> Variable[int | D]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least or (most is not None and value > most):
            raise ValueError(text)
        return value

    span = f"from {least} to {most}" if most is not None else f"of {least} or more"
    return Variable(
        name,
        owner=owner,
        category=category,
        kind="integer",
        allowed=f"an integer {span}",
        default="none" if default is None else str(default),
        meaning=meaning,
        parse=parse,
        make_default=lambda: default,
    )


def _seconds(name: str, *, owner: str, category: str, default: float, meaning: str) -> Variable[float]:
    def parse(text: str) -> float:
        value = float(text)
        # NaN and infinity fail one of the two comparisons.
        if not 0 < value < float("inf"):
            raise ValueError(text)
        return value

    return Variable(
        name,
        owner=owner,
        category=category,
        kind="seconds",
        allowed="a number of seconds greater than 0",
        default=f"{default:g}",
        meaning=meaning,
        parse=parse,
        make_default=lambda: default,
    )


def _text(
    name: str,
    *,
    owner: str,
    category: str,
    default: D,
    meaning: str,
    allowed: str = "any text",
) -> Variable[str | D]:
    return Variable(
        name,
        owner=owner,
        category=category,
        kind="text",
        allowed=allowed,
        default="none" if default is None else str(default),
        meaning=meaning,
        parse=str,
        make_default=lambda: default,
    )


def _choice(
    name: str, *, owner: str, category: str, choices: tuple[str, ...], default: str, meaning: str
) -> Variable[str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(text)
        return text.lower()

    return Variable(
        name,
        owner=owner,
        category=category,
        kind="choice",
        allowed=f"one of {', '.join(choices)}",
        default=default,
        meaning=meaning,
        parse=parse,
        make_default=lambda: default,
    )


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(os.path.expanduser(text))


def _directory(name: str, *, owner: str, category: str, default: str, meaning: str) -> Variable[Path]:
    return Variable(
        name,
        owner=owner,
        category=category,
        kind="directory",
        allowed="the path of a directory",
        default=default,
        meaning=meaning,
        parse=_path,
        make_default=lambda: _path(default),
    )


def _optional_directory(name: str, *, owner: str, category: str, default: str, meaning: str) -> Variable[Path | None]:
    return Variable(
        name,
        owner=owner,
        category=category,
        kind="directory",
        allowed="the path of a directory",
        default=default,
        meaning=meaning,
        parse=_path,
        make_default=lambda: None,
    )


def _integers(name: str, *, owner: str, category: str, default: str, meaning: str) -> Variable[tuple[int, ...] | None]:
    def parse(text: str) -> tuple[int, ...]:
        values = tuple(int(part) for part in text.split(","))
        if min(values) < 0 or len(set(values)) != len(values):
            raise ValueError(text)
        return values

    return Variable(
        name,
        owner=owner,
        category=category,
        kind="integers",
        allowed="different integers of 0 or more, separated by commas",
        default=default,
        meaning=meaning,
        parse=parse,
        make_default=lambda: None,
    )


# ------------------------------------------------------------------------------ ours, at run time

TRITON_DIST_BACKEND = _choice(
    "TRITON_DIST_BACKEND",
    owner="triton-dist",
    category=RUN,
    choices=("auto", "sim", "ascend"),
    default="auto",
    meaning="Where kernels run: simulated NPUs, Ascend NPUs, or Ascend NPUs if there are any.",
)
TRITON_DIST_SIM_NPUS = _integer(
    "TRITON_DIST_SIM_NPUS",
    owner="triton-dist",
    category=RUN,
    default=8,
    least=1,
    most=1024,
    meaning="How many simulated NPUs the host has; torch.npu.device_count() gives it.",
)
TRITON_DIST_SIM_SOC = _text(
    "TRITON_DIST_SIM_SOC",
    owner="triton-dist",
    category=RUN,
    default="Ascend910B3",
    allowed="the name of a SoC, such as Ascend910B3",
    meaning="The SoC whose limits and rules the simulated NPUs have.",
)
TRITON_DIST_SESSION = _text(
    "TRITON_DIST_SESSION",
    owner="triton-dist",
    category=RUN,
    default=None,
    meaning="Rendezvous name that comes with a lease; wins over SHMEM_UID_SESSION_ID and ip_port.",
)
TRITON_DIST_MASTER_PORT = _integer(
    "TRITON_DIST_MASTER_PORT",
    owner="triton-dist",
    category=RUN,
    default=None,
    least=1,
    most=65535,
    meaning="Port that comes with a lease; torch.distributed's rendezvous uses it instead of the "
    "one that the code names.",
)
TRITON_DIST_LEASE_DIR = _optional_directory(
    "TRITON_DIST_LEASE_DIR",
    owner="triton-dist",
    category=RUN,
    default="/run/lock/triton-dist where it can be used, else a directory of the host's under the "
    "system's temporary one",
    meaning="Where the leases of the host's NPUs are kept; all users of a host must agree on it.",
)
TRITON_DIST_CACHE_DIR = _directory(
    "TRITON_DIST_CACHE_DIR",
    owner="triton-dist",
    category=RUN,
    default="~/.cache/triton-dist",
    meaning="Where compiled kernels and the torch device extension are cached.",
)
TRITON_DIST_HEAP_TIMEOUT = _seconds(
    "TRITON_DIST_HEAP_TIMEOUT",
    owner="triton-dist",
    category=RUN,
    default=60.0,
    meaning="How long the ranks of a job wait for each other when a symmetric heap is made.",
)

# ------------------------------------------------------------------------- inherited, at run time

SHMEM_UID_SESSION_ID = _text(
    "SHMEM_UID_SESSION_ID",
    owner="aclshmem",
    category=RUN,
    default=None,
    allowed="ip:port, [ipv6]:port or hostname:port",
    meaning="Where PE 0 listens for the bootstrap; wins over ip_port.",
)
TRITON_ASCEND_ARCH = _text(
    "TRITON_ASCEND_ARCH",
    owner="triton-ascend",
    category=RUN,
    default=None,
    allowed="the name of a SoC, such as Ascend910B3",
    meaning="The SoC to compile for where no device can be asked.",
)
TRITON_CACHE_DIR = _directory(
    "TRITON_CACHE_DIR",
    owner="triton-ascend",
    category=RUN,
    default="~/.triton/cache",
    meaning="Triton's cache of compiled kernels.",
)
TRITON_DISABLE_LINE_INFO = _flag(
    "TRITON_DISABLE_LINE_INFO",
    owner="triton-ascend",
    category=RUN,
    default=True,
    meaning="Leave source lines out of the kernel's IR. On simulated NPUs they stay in unless this is set.",
)
TRITON_COMPILE_ONLY = _flag(
    "TRITON_COMPILE_ONLY",
    owner="triton-ascend",
    category=RUN,
    default=False,
    meaning="Compile kernels and do not run them.",
)
ASCEND_RT_VISIBLE_DEVICES = _integers(
    "ASCEND_RT_VISIBLE_DEVICES",
    owner="CANN",
    category=RUN,
    default="all",
    meaning="The NPUs that this process sees, by their logical ids, in the order of its own numbering.",
)
TORCH_DEVICE_BACKEND_AUTOLOAD = _flag(
    "TORCH_DEVICE_BACKEND_AUTOLOAD",
    owner="torch",
    category=RUN,
    default=True,
    meaning="Whether `import torch` loads device backends, ours among them.",
)
MASTER_ADDR = _text(
    "MASTER_ADDR",
    owner="torch",
    category=RUN,
    default=None,
    allowed="a host name or an address",
    meaning="Host of the rendezvous of torch.distributed.",
)
MASTER_PORT = _integer(
    "MASTER_PORT",
    owner="torch",
    category=RUN,
    default=None,
    least=0,
    most=65535,
    meaning="Port of the rendezvous of torch.distributed.",
)
RANK = _integer(
    "RANK",
    owner="torch",
    category=RUN,
    default=None,
    least=0,
    meaning="Number of this process in its job.",
)
WORLD_SIZE = _integer(
    "WORLD_SIZE",
    owner="torch",
    category=RUN,
    default=None,
    least=1,
    meaning="How many processes the job has.",
)
LOCAL_RANK = _integer(
    "LOCAL_RANK",
    owner="torch",
    category=RUN,
    default=None,
    least=0,
    meaning="Number of this process among those of its job on this host.",
)
LOCAL_WORLD_SIZE = _integer(
    "LOCAL_WORLD_SIZE",
    owner="torch",
    category=RUN,
    default=None,
    least=1,
    meaning="How many processes the job has on this host.",
)
OMP_NUM_THREADS = _integer(
    "OMP_NUM_THREADS",
    owner="OpenMP",
    category=RUN,
    default=None,
    least=1,
    meaning="Threads that an operator of torch may use; the ranks of a test get 1 where it is not set.",
)
GLOO_SOCKET_IFNAME = _text(
    "GLOO_SOCKET_IFNAME",
    owner="torch",
    category=RUN,
    default=None,
    allowed="the name of a network interface",
    meaning="The interface that gloo connects ranks over; the ranks of a test get the loopback where it is not set.",
)

# ------------------------------------------------------------------------------------- build time

LLVM_SYSPATH = _optional_directory(
    "LLVM_SYSPATH",
    owner="triton",
    category=BUILD,
    default="the distribution's prefix, such as /usr/lib/llvm-19",
    meaning="Prefix of the LLVM and MLIR to build against; nothing is fetched.",
)
TRITON_BUILD_WITH_CLANG_LLD = _flag(
    "TRITON_BUILD_WITH_CLANG_LLD",
    owner="triton",
    category=BUILD,
    default=None,
    meaning="Build with clang and lld instead of the default compiler and linker.",
)
TRITON_BUILD_WITH_CCACHE = _flag(
    "TRITON_BUILD_WITH_CCACHE",
    owner="triton",
    category=BUILD,
    default=None,
    meaning="Compile through ccache.",
)
TRITON_APPEND_CMAKE_ARGS = _text(
    "TRITON_APPEND_CMAKE_ARGS",
    owner="triton",
    category=BUILD,
    default=None,
    allowed="arguments for cmake, separated by spaces and quoted as in a shell",
    meaning="Further arguments of the CMake configure step.",
)
TRITON_OFFLINE_BUILD = _flag(
    "TRITON_OFFLINE_BUILD",
    owner="triton",
    category=BUILD,
    default=False,
    meaning="Forbid every download during the build.",
)
MAX_JOBS = _integer(
    "MAX_JOBS",
    owner="triton",
    category=BUILD,
    default=None,
    least=1,
    meaning="How many compile jobs run at once; by default as many as there are cores.",
)
TRITON_PARALLEL_LINK_JOBS = _integer(
    "TRITON_PARALLEL_LINK_JOBS",
    owner="triton",
    category=BUILD,
    default=None,
    least=1,
    meaning="How many links run at once; they need much memory.",
)
DEBUG = _flag(
    "DEBUG",
    owner="triton",
    category=BUILD,
    default=False,
    meaning="Build type Debug.",
)
REL_WITH_DEB_INFO = _flag(
    "REL_WITH_DEB_INFO",
    owner="triton",
    category=BUILD,
    default=False,
    meaning="Build type RelWithDebInfo.",
)
TRITON_REL_BUILD_WITH_ASSERTS = _flag(
    "TRITON_REL_BUILD_WITH_ASSERTS",
    owner="triton",
    category=BUILD,
    default=False,
    meaning="Build type TritonRelBuildWithAsserts: optimised, with assertions.",
)
TRITON_BUILD_WITH_O1 = _flag(
    "TRITON_BUILD_WITH_O1",
    owner="triton",
    category=BUILD,
    default=False,
    meaning="Build type TritonBuildWithO1: optimised a little, quick to build.",
)
TRITON_DIST_TORCH_INDEX = _text(
    "TRITON_DIST_TORCH_INDEX",
    owner="triton-dist",
    category=BUILD,
    default=None,
    allowed="the URL of a package index or the path of a directory of wheels",
    meaning="Where the build takes torch from when the environment has none.",
)
VIRTUAL_ENV = _optional_directory(
    "VIRTUAL_ENV",
    owner="python",
    category=BUILD,
    default="none",
    meaning="The active virtual environment; the build installs into it.",
)
CONDA_PREFIX = _optional_directory(
    "CONDA_PREFIX",
    owner="conda",
    category=BUILD,
    default="none",
    meaning="The active conda environment; the build installs into it.",
)

REGISTRY: dict[str, Variable[object]] = {
    variable.name: variable for variable in list(globals().values()) if isinstance(variable, Variable)
}


def variables(category: str | None = None) -> Iterable[Variable[object]]:
    """All variables, or those of one category, in the order of this file."""
    return [v for v in REGISTRY.values() if category is None or v.category == category]


def apply(changes: Mapping[str, object | None]) -> None:
    """Sets variables of this process, or takes those out whose new value is None.

    Raises:
        EnvironmentVariableError: a value is not allowed; nothing has been changed then.
    """
    texts = _checked(changes)
    for name, text in texts.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text


def child_environ(**changes: object | None) -> dict[str, str]:
    """A copy of this process's environment with `changes`; a value of None takes the variable out.

    Raises:
        EnvironmentVariableError: a value is not allowed.
    """
    environ = dict(os.environ)
    for name, text in _checked(changes).items():
        if text is None:
            environ.pop(name, None)
        else:
            environ[name] = text
    return environ


def _checked(changes: Mapping[str, object | None]) -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for name, value in changes.items():
        texts[name] = None if value is None else str(value)
        variable = REGISTRY.get(name)
        if variable is not None and value is not None:
            variable.parse(str(value))
    return texts
