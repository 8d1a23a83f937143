"""All functions on addresses and all types in one name space, as in the extension module of the real package."""

# ruff: noqa: F403 - a name space made of others

from __future__ import annotations

from . import _rma, _teams, _waits
from ._lifecycle import *
from ._memory import *
from ._rma import *
from ._settings import *
from ._teams import *
from ._types import *
from ._waits import *

globals().update(_rma.FAMILIES)
globals().update(_waits.FAMILIES)
_is_valid_team = _teams.is_live_team
