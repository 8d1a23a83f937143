"""The second layer of aclshmem's Python package: memory as `Buffer` objects, failures as `AclshmemError`."""

from __future__ import annotations

from . import direct as direct
from .config import set_mte_config as set_mte_config
from .config import set_rdma_config as set_rdma_config
from .config import set_sdma_config as set_sdma_config
from .config import set_udma_config as set_udma_config
from .init_final import UniqueID as UniqueID
from .init_final import finalize as finalize
from .init_final import get_unique_id as get_unique_id
from .init_final import get_version as get_version
from .init_final import init as init
from .memory import align as align
from .memory import buffer as buffer
from .memory import calloc as calloc
from .memory import free as free
from .memory import get_peer_buffer as get_peer_buffer
from .multi_instance import InstanceContext as InstanceContext
from .multi_instance import current_instance as current_instance
from .multi_instance import multi_instance as multi_instance
from .multi_instance import set_instance as set_instance
from .profiling import ProfData as ProfData
from .profiling import get_prof as get_prof
from .profiling import show_prof as show_prof
from .rma import get as get
from .rma import put as put
from .rma import put_signal as put_signal
from .rma import quiet as quiet
from .rma import signal_op as signal_op
from .rma import signal_wait as signal_wait
from .sync import ACLSHMEM_MAX_TEAMS as ACLSHMEM_MAX_TEAMS
from .sync import ACLSHMEM_TEAM_INVALID as ACLSHMEM_TEAM_INVALID
from .sync import ACLSHMEM_TEAM_WORLD as ACLSHMEM_TEAM_WORLD
from .sync import Handle as Handle
from .sync import barrier as barrier
from .sync import barrier_all as barrier_all
from .sync import barrier_all_on_stream as barrier_all_on_stream
from .sync import barrier_on_stream as barrier_on_stream
from .sync import handle_wait as handle_wait
from .sync import sync as sync
from .sync import sync_all as sync_all
from .utils import Buffer as Buffer
from .utils import MemType as MemType
