"""Joining and leaving a job by the functions of aclshmem."""

from __future__ import annotations

import time
from typing import Any

import host_api
import light_ranks
import pytest

from triton_dist.shims import shmem as ash


def session() -> dict[str, str]:
    """An environment in which any ip_port leads to a job of this test only."""
    return {"TRITON_DIST_SESSION": light_ranks.new_endpoint()}


# ------------------------------------------------------------------------------------------ attributes, alone


@pytest.mark.parametrize(
    ("name", "value"),
    [("my_rank", "0"), ("n_ranks", 2.0), ("ip_port", 8666), ("local_mem_size", None), ("my_rank", True)],
)
def test_attributes_take_values_of_their_type_only(name: str, value: Any) -> None:
    attributes = ash.InitAttr()
    with pytest.raises(TypeError, match=rf"InitAttr\.{name} takes an? "):
        setattr(attributes, name, value)


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="my_rnak"):
        ash.InitAttr().my_rnak = 1
    with pytest.raises(AttributeError, match="engine"):
        ash.InitAttr().option_attr.engine = ash.OpEngineType.MTE


def test_an_engine_is_an_engine() -> None:
    option: Any = ash.InitAttr().option_attr
    option.data_op_engine_type = ash.OpEngineType.SDMA
    assert option.data_op_engine_type is ash.OpEngineType.SDMA
    with pytest.raises(TypeError, match=r"OptionalAttr\.data_op_engine_type takes an OpEngineType"):
        option.data_op_engine_type = 2


@pytest.mark.parametrize("instance", [True, -1, 255, 1 << 64, "0"])
def test_impossible_instances_are_refused(instance: Any) -> None:
    with pytest.raises(ValueError, match=r"instance_id is .*: it must be an integer from 0 to 254"):
        ash.InitAttr().instance_id = instance
    with pytest.raises(ValueError, match="instance_id is"):
        ash.aclshmemx_finalize(instance)


def test_numbers_are_those_of_aclshmem() -> None:
    assert [int(op) for op in (ash.SignalOp.SIGNAL_SET, ash.SignalOp.SIGNAL_ADD)] == [0, 1]
    names = ("EQ", "NE", "GT", "GE", "LT", "LE")
    assert [int(ash.CmpOp[f"CMP_{name}"]) for name in names] == [0, 1, 2, 3, 4, 5]
    assert [int(ash.OpEngineType[name]) for name in ("MTE", "SDMA", "ROCE", "UDMA")] == [1, 2, 4, 8]


def test_what_needs_no_job() -> None:
    assert ash.set_conf_store_tls(False, "") == 0
    assert ash.get_ffts_config() == 0
    assert ash.aclshmemx_init_status() is ash.InitStatus.NOT_INITIALIZED
    assert ash.aclshmem_finalize() == ash.aclshmem_finialize() == 0
    assert ash.aclshmemx_get_heap_base() == 0
    assert ash.aclshmemx_instance_ctx_get() is None
    assert len(ash.aclshmem_info_get_version()) == 2
    assert ash.core.get_version().startswith("libaclshmem_version=")


def test_messages_go_to_a_function_of_the_users() -> None:
    said: list[tuple[int, str]] = []
    assert ash.set_extern_logger(lambda level, text: said.append((level, text))) == 0
    try:
        assert (ash.set_log_level(2), ash.set_log_level(7)) == (0, -1)
        logger = ash._lifecycle.logger
        logger.info("not this")
        logger.warning("this")
        assert said == [(2, "this")]
    finally:
        ash.set_log_level(3)
        ash._lifecycle.logger.handlers.clear()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ash.aclshmem_malloc(64),
        lambda: ash.aclshmem_free(64),
        lambda: ash.aclshmem_putmem(64, 64, 4, 0),
        lambda: ash.aclshmem_barrier_all(),
        lambda: ash.my_pe(),
        lambda: ash.aclshmem_int32_wait_until(64, 0, 0),
        lambda: ash.aclshmem_quiet(),
    ],
)
def test_use_before_init_says_so(call: Any) -> None:
    with pytest.raises(RuntimeError, match="needs shmem to be initialised: call aclshmem_init first"):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ash.aclshmem_global_exit(1), "aclshmem_global_exit"),
        (lambda: ash.aclshmemx_set_qp_num(ash.OpEngineType.ROCE, 2), "aclshmemx_set_qp_num"),
        (lambda: ash.aclshmemx_malloc(64, ash.MemType.HOST_SIDE), "aclshmemx_malloc: MemType.HOST_SIDE"),
        (lambda: ash.aclshmemx_init_attr(ash.InitMode.MPI, ash.InitAttr()), "InitMode.MPI"),
    ],
)
def test_what_simulated_npus_cannot_give_is_named(call: Any, name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        call()


def test_unique_ids_differ_and_survive_transport() -> None:
    first, second = ash.aclshmem_get_unique_id(), ash.aclshmem_get_unique_id()
    assert len(first) == 512
    assert first != second
    assert ash.UniqueId.from_bytes(first).to_bytes() == first
    with pytest.raises(ValueError, match="has 512 bytes, not 511"):
        ash.UniqueId.from_bytes(first[1:])
    with pytest.raises(ValueError, match="was not made by aclshmem_get_unique_id"):
        ash.aclshmem_init_using_unique_id(0, 1, 1 << 20, bytes(512))


# --------------------------------------------------------------------------------------------------- jobs


def come_and_go(rank: int, world_size: int) -> None:
    for _ in range(3):
        host_api.init(rank, world_size, port=8666)
        assert ash.aclshmemx_init_status() is ash.InitStatus.INITIALIZED
        assert (ash.my_pe(), ash.pe_count()) == (rank, world_size)
        assert "already rank" in host_api.error(host_api.init, rank, world_size, 8666)
        assert ash.aclshmem_finalize() == 0
        assert ash.aclshmem_finalize() == 0
        assert ash.aclshmemx_init_status() is ash.InitStatus.NOT_INITIALIZED
        text = host_api.error(ash.aclshmem_malloc, 64)
        assert text.startswith("RuntimeError: aclshmem_malloc was called after aclshmem_finalize")


def test_a_job_can_be_left_and_joined_again_at_once() -> None:
    light_ranks.values(light_ranks.run(come_and_go, 2, environment=session()))


def meet_by_unique_id(rank: int, world_size: int, uid: bytes) -> int:
    if rank == 0:
        assert ash.aclshmem_init_using_unique_id(rank, world_size, 1 << 20, uid) == 0
    elif rank == 1:
        ash.core.init(rank=rank, nranks=world_size, mem_size=1 << 20, uid=uid, initializer_method="uid")
    else:
        attributes = ash.InitAttr()
        assert (
            ash.aclshmemx_set_attr_uniqueid_args(rank, world_size, 1 << 20, ash.UniqueId.from_bytes(uid), attributes)
            == 0
        )
        assert ash.aclshmemx_init_attr(ash.InitMode.UNIQUEID, attributes) == 0
    number = ash.pe_count()
    ash.core.finalize()
    return number


def test_ranks_meet_by_unique_id_in_each_of_its_ways() -> None:
    uid = ash.aclshmem_get_unique_id()
    assert light_ranks.values(light_ranks.run(meet_by_unique_id, 3, uid)) == [3, 3, 3]


def two_jobs(group: int, rank: int, uids: list[bytes]) -> int:
    """Two groups of two, in one lease, at the same time."""
    ash.aclshmem_init_using_unique_id(rank, 2, 1 << 20, uids[group])
    word = ash.aclshmem_calloc(16, 4)
    ash.aclshmem_int32_p(word, 10 * group + rank, 1 - rank)
    ash.aclshmem_barrier_all()
    value = host_api.int32s(word, 1)[0]
    ash.aclshmem_finalize()
    return int(value)


def test_two_unique_ids_are_two_jobs_even_in_one_lease() -> None:
    uids = [ash.aclshmem_get_unique_id() for _ in range(2)]
    calls = [(0, 0, uids), (1, 0, uids), (0, 1, uids), (1, 1, uids)]
    outcomes = light_ranks.run(two_jobs, calls, environment=session())
    assert light_ranks.values(outcomes) == [1, 11, 0, 10]


def come_alone(rank: int, world_size: int, timeout: int | None) -> float:
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, world_size, 1 << 20
    attributes.ip_port = "tcp://127.0.0.1:8666"
    if timeout is not None:
        attributes.option_attr.shm_init_timeout = timeout
    begin = time.monotonic()
    text = host_api.error(ash.aclshmem_init, attributes)
    assert "rank 1 of 2 did not come" in text
    assert ash.aclshmemx_init_status() is ash.InitStatus.NOT_INITIALIZED
    return time.monotonic() - begin


@pytest.mark.parametrize(("timeout", "environment"), [(1, "20"), (None, "1")])
def test_time_outs_of_code_and_environment(timeout: int | None, environment: str) -> None:
    outcomes = light_ranks.run(
        come_alone, [(0, 2, timeout)], environment={**session(), "TRITON_DIST_HEAP_TIMEOUT": environment}
    )
    (seconds,) = light_ranks.values(outcomes)
    assert 1.0 <= seconds < 8.0


def end_without_finalize(rank: int, world_size: int) -> int:
    host_api.init(rank, world_size, port=8666)
    return ash.aclshmem_malloc(64)


def test_an_interpreter_that_ends_without_finalize_does_not_hang() -> None:
    outcomes = light_ranks.run(end_without_finalize, 2, environment=session())
    light_ranks.values(outcomes)
