"""Variables of CANN and of the container runtime: which NPUs there are, where CANN is, what it logs."""

from __future__ import annotations

from . import kinds
from .variable import HARDWARE, RUN, Declare

_NO_CANN = "Simulated NPUs need no CANN."

_cann = Declare("CANN", RUN, acts_on=HARDWARE)

ASCEND_RT_VISIBLE_DEVICES = _cann(
    "ASCEND_RT_VISIBLE_DEVICES",
    kinds.INTEGERS,
    unset="all",
    since="CANN 6.3",
    note="TRITON_DIST_SIM_NPUS says how many simulated NPUs there are.",
    meaning="The NPUs that this process sees, by their logical ids, in the order of its own numbering.",
)
ASCEND_VISIBLE_DEVICES = _cann(
    "ASCEND_VISIBLE_DEVICES",
    kinds.DEVICES,
    owner="Ascend Docker Runtime",
    since="MindX DL 5.0",
    note="Simulated NPUs need no devices of the host.",
    meaning="The NPUs that the container sees; ASCEND_RT_VISIBLE_DEVICES counts within this list.",
)
ASCEND_HOME_PATH = _cann(
    "ASCEND_HOME_PATH",
    kinds.DIRECTORY,
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="Where CANN is installed; its set_env.sh sets it.",
)
ASCEND_TOOLKIT_HOME = _cann(
    "ASCEND_TOOLKIT_HOME",
    kinds.DIRECTORY,
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="Where CANN's toolkit is installed; its set_env.sh sets it.",
)
ASCEND_OPP_PATH = _cann(
    "ASCEND_OPP_PATH",
    kinds.DIRECTORY,
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="Where CANN's operators are installed; its set_env.sh sets it.",
)
ASCEND_GLOBAL_LOG_LEVEL = _cann(
    "ASCEND_GLOBAL_LOG_LEVEL",
    kinds.integer(0, 4),
    default="3",
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="The least severe messages that CANN logs: 0 debug, 1 info, 2 warning, 3 error, 4 none.",
)
ASCEND_SLOG_PRINT_TO_STDOUT = _cann(
    "ASCEND_SLOG_PRINT_TO_STDOUT",
    kinds.FLAG_ONE,
    default="0",
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="Print CANN's log to the console instead of writing files.",
)
ASCEND_PROCESS_LOG_PATH = _cann(
    "ASCEND_PROCESS_LOG_PATH",
    kinds.DIRECTORY,
    default="~/ascend/log",
    since="CANN 5.0.4",
    note=_NO_CANN,
    meaning="Directory of CANN's log files.",
)
