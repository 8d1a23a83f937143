"""Every environment variable that this project acts on or knows of: one typed descriptor each.

This is the only package that reads the environment:

    from triton_dist import env

    env.TRITON_DIST_SIM_NPUS.get()                      # 8
    env.apply({"TRITON_DIST_BACKEND": "sim"})           # this process
    env.child_environ(RANK=0, TRITON_DIST_SESSION=None) # a child's, with one variable taken out

Values are read when they are asked for, never at import. A variable that is set to nothing counts as
not set. A variable's definition stands in the file of its owner.

The package is imported at interpreter start and by the build backend, so at its import it needs nothing but `os`, and
is quick. The build backend loads it from its path, under another name: imports inside the package are relative.
"""

from __future__ import annotations

from .aclshmem import *
from .build import *
from .cann import *
from .hccl import *
from .ours import *
from .process import apply as apply
from .process import child_environ as child_environ
from .process import replace as replace
from .registry import REGISTRY as REGISTRY
from .registry import variables as variables
from .torch import *
from .triton_ascend import *
from .variable import BOTH as BOTH
from .variable import BUILD as BUILD
from .variable import HARDWARE as HARDWARE
from .variable import IP_PORT as IP_PORT
from .variable import NOTHING as NOTHING
from .variable import RUN as RUN
from .variable import SIMULATED as SIMULATED
from .variable import UNIQUE_ID as UNIQUE_ID
from .variable import EnvironmentVariableError as EnvironmentVariableError
from .variable import Variable as Variable
