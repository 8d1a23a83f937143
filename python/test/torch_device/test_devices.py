"""torch.npu: which NPUs there are, which one is current, their streams, events and memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from triton_dist import env
from triton_dist.runtime import torch_device

npu = torch.npu  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def first_npu_is_current() -> Iterator[None]:
    npu.set_device(0)
    yield
    npu.set_device(0)


def test_there_are_as_many_npus_as_the_variable_says() -> None:
    assert npu.is_available()
    assert npu.device_count() == env.TRITON_DIST_SIM_NPUS.get()
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.accelerator.device_count() == npu.device_count()


def test_the_number_of_npus_can_be_chosen(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        "import torch; print(torch.npu.device_count(), torch.ones(1, device='npu:2').device)", TRITON_DIST_SIM_NPUS=3
    )
    assert result.stdout.split() == ["3", "npu:2"], result.stderr


@pytest.mark.parametrize("name", ["npu:2", 2, torch.device("npu", 2), torch.device("npu:2")])
def test_set_device_decides_what_npu_means(name: object) -> None:
    npu.set_device(name)
    assert npu.current_device() == 2
    made = {
        "factory": torch.empty(1, device="npu"),
        "to": torch.empty(1).to("npu"),
        "npu": torch.empty(1).npu(),  # type: ignore[attr-defined]
        "device object": torch.empty(1, device=torch.device("npu")),
        "random": torch.randn(1, device="npu"),
        "arange": torch.arange(3, device="npu"),
        "tensor": torch.tensor([1], device="npu"),
        "cast": torch.empty(1).to("npu", torch.float16),
        "index alone": torch.empty(1).npu(2),  # type: ignore[attr-defined]
        "module": torch.nn.Linear(1, 1).npu().weight,  # type: ignore[operator]
    }
    assert {name: tensor.device for name, tensor in made.items()} == dict.fromkeys(made, torch.device("npu", 2))


def test_an_index_wins_over_the_current_npu() -> None:
    npu.set_device(2)
    assert torch.empty(1, device="npu:1").device == torch.device("npu:1")
    assert torch.empty(1).npu("npu:1").device == torch.device("npu:1")  # type: ignore[attr-defined]
    assert torch.empty(1, device="npu:1").to("npu").device.type == "npu"
    assert torch.empty(1, device="npu:1").new_zeros(2).device == torch.device("npu:1")


def test_contexts_change_the_current_npu_and_change_it_back() -> None:
    with npu.device(1):
        assert npu.current_device() == 1
        with npu.device_of(torch.empty(1, device="npu:3")):
            assert npu.current_device() == 3
        with npu.device(None):
            assert npu.current_device() == 1
    assert npu.current_device() == 0
    with torch.device("npu:2"):
        assert torch.empty(1).device == torch.device("npu:2")


def test_each_thread_has_a_current_npu_of_its_own() -> None:
    npu.set_device(3)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(npu.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert npu.current_device() == 3


def test_an_npu_that_is_not_there_is_named() -> None:
    count = npu.device_count()
    missing = f"there is no npu:{count}: this process has {count} simulated"
    with pytest.raises(RuntimeError, match=missing):
        npu.set_device(count)
    with pytest.raises(RuntimeError, match=missing):
        torch.empty(1, device=f"npu:{count}")
    with pytest.raises(RuntimeError, match=missing):
        torch.empty(1).npu(count)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="expected an NPU such as 'npu:0', got device 'cpu'"):
        npu.synchronize("cpu")


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"torch\.npu\.graph_pool_handle is not there on simulated NPUs"):
        _ = npu.graph_pool_handle


def test_an_npu_says_what_it_is() -> None:
    assert npu.get_device_name() == env.TRITON_DIST_SIM_SOC.get()
    assert npu.get_device_properties("npu:1").name == npu.get_device_name(1)
    assert npu.get_device_properties().total_memory > 2**28
    assert npu.is_bf16_supported()
    assert npu.can_device_access_peer(0, 1)
    assert npu.is_initialized()


def test_synchronize_calls_the_hooks_of_that_npu_and_passes_their_errors_on() -> None:
    calls: list[int] = []
    remove = torch_device.on_synchronize(calls.append)
    try:
        npu.set_device(1)
        npu.synchronize()
        npu.synchronize(2)
        npu.Stream(device="npu:3").synchronize()
        event = npu.Event()
        event.record()
        event.synchronize()
    finally:
        remove()
    npu.synchronize()
    assert calls == [1, 2, 3, 1]

    def fail(_index: int) -> None:
        raise ArithmeticError("a kernel has failed")

    remove = torch_device.on_synchronize(fail)
    try:
        with pytest.raises(ArithmeticError, match="a kernel has failed"):
            npu.synchronize()
    finally:
        remove()


def test_events_measure_time() -> None:
    start, end = npu.Event(enable_timing=True), npu.Event(enable_timing=True)
    start.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert 20 <= start.elapsed_time(end) < 10_000
    assert start.query()


def test_events_that_cannot_measure_say_so() -> None:
    timed, untimed = npu.Event(enable_timing=True), npu.Event()
    with pytest.raises(RuntimeError, match="have been recorded"):
        timed.elapsed_time(npu.Event(enable_timing=True))
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        timed.elapsed_time(untimed)


def test_streams() -> None:
    stream = npu.Stream()
    assert isinstance(stream, torch.Stream)
    assert npu.current_stream() == npu.default_stream()
    assert npu.current_stream().npu_stream == 0
    with npu.stream(stream):
        assert npu.current_stream() == stream
        assert npu.current_stream(1) == npu.default_stream(1)
    assert npu.current_stream() == npu.default_stream()
    with npu.stream(None):
        assert npu.current_stream() == npu.default_stream()
    event = stream.record_event()
    stream.wait_event(event)
    stream.wait_stream(npu.current_stream())
    stream.synchronize()
    assert stream.query()
    torch.empty(1, device="npu").record_stream(stream)


def test_a_stream_of_another_npu_makes_that_npu_current_meanwhile() -> None:
    with npu.stream(npu.Stream(device=2)):
        assert npu.current_device() == 2
    assert npu.current_device() == 0


def test_memory_is_counted_per_npu() -> None:
    before, other = npu.memory_allocated(5), npu.memory_allocated(4)
    tensor = torch.empty(1 << 18, dtype=torch.float32, device="npu:5")
    result = tensor + 1
    assert npu.memory_allocated(5) - before == 2 << 20
    assert npu.memory_allocated(4) == other
    assert npu.max_memory_allocated(5) >= before + (2 << 20)
    view = result[:1]
    del tensor, result
    assert npu.memory_allocated(5) - before == 1 << 20
    del view
    assert npu.memory_allocated(5) == before
    npu.reset_peak_memory_stats(5)
    assert npu.max_memory_allocated(5) == before
    free, total = npu.mem_get_info()
    assert 0 < free <= total
    npu.empty_cache()


def test_too_large_a_tensor_is_an_out_of_memory_error() -> None:
    with pytest.raises(npu.OutOfMemoryError, match=r"npu:1 is out of memory: tried to allocate 1125899906842624 bytes"):
        torch.empty(1 << 50, dtype=torch.uint8, device="npu:1")
