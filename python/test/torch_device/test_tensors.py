"""Tensors on npu: what makes them, views of them, copies between devices, storages, files."""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from triton_dist.runtime.torch_device import tensor_from_address


def on_npu(*size: int) -> torch.Tensor:
    return torch.arange(torch.Size(size).numel(), dtype=torch.float32).view(size).to("npu:1")


def test_a_tensor_knows_that_it_is_on_an_npu() -> None:
    tensor = torch.ones(2, device="npu:1")
    assert tensor.device.type == "npu"
    assert tensor.device.index == 1
    assert tensor.is_npu  # type: ignore[attr-defined]
    assert not tensor.is_cpu
    assert tensor.get_device() == 1
    assert not torch.ones(2).is_npu  # type: ignore[attr-defined]
    assert tensor.type() == "torch.npu.FloatTensor"


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.int64,
        torch.bool,
        torch.complex64,
        torch.uint8,
        torch.float64,
    ],
)
def test_values_survive_the_way_there_and_back(dtype: torch.dtype) -> None:
    host = torch.arange(-6, 6).to(dtype).view(3, 4)
    for form in (host, host.t(), host[::2], host[:, 1:3], host[0, 0], host[:0]):
        there = form.npu()  # type: ignore[attr-defined]
        assert there.dtype == dtype
        assert torch.equal(there.cpu(), form)
        assert there.cpu().stride() == form.clone().stride()


def test_the_data_pointer_is_an_address_of_the_host() -> None:
    tensor = on_npu(4)
    memory = (ctypes.c_float * 4).from_address(tensor.data_ptr())
    assert list(memory) == [0, 1, 2, 3]
    memory[2] = 7
    assert tensor.tolist() == [0, 1, 7, 3]
    assert tensor.data_ptr() % 64 == 0


def test_printing_shows_values_and_device() -> None:
    assert repr(torch.ones(2, device="npu:1")) == "tensor([1., 1.], device='npu:1')"
    assert f"{torch.tensor(1.5, device='npu'):.2f}" == "1.50"
    assert torch.tensor(3, device="npu").item() == 3


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.view(2, 6),
        lambda t: t.reshape(-1),
        lambda t: t.t(),
        lambda t: t[1],
        lambda t: t[:, 1:3],
        lambda t: t[::2, ::3],
        lambda t: t.unsqueeze(0).expand(2, 3, 4),
        lambda t: t.permute(1, 0),
        lambda t: t.diagonal(),
        lambda t: t.unfold(1, 2, 1),
        lambda t: t.as_strided((2, 2), (4, 1), 5),
        lambda t: t.squeeze(),
        lambda t: t.chunk(3)[1],
        lambda t: t.split([1, 3], 1)[1],
        lambda t: t.unbind(1)[2],
        lambda t: t.flatten(),
        lambda t: t.narrow(0, 1, 2),
        lambda t: t.view(torch.int32),
        lambda t: t.detach(),
        lambda t: t.movedim(0, 1),
        lambda t: t.contiguous(),
    ],
)
def test_a_view_shares_the_memory_of_its_base(view) -> None:  # type: ignore[no-untyped-def]
    host, there = torch.arange(12, dtype=torch.float32).view(3, 4), on_npu(3, 4)
    of_host, of_there = view(host), view(there)
    assert of_there.device == there.device
    assert (of_there.shape, of_there.stride(), of_there.storage_offset()) == (
        of_host.shape,
        of_host.stride(),
        of_host.storage_offset(),
    )
    assert of_there.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    of_there.zero_()
    of_host.zero_()
    assert torch.equal(there.cpu(), host)
    there.fill_(5)
    assert bool((of_there == torch.full_like(there, 5).view(of_there.dtype)[0, 0]).all())


def test_overlapping_arguments_are_refused_as_on_the_cpu() -> None:
    tensor = on_npu(4)
    with pytest.raises(RuntimeError, match="memory location"):
        torch.add(tensor[:3], 1, out=tensor[1:])


def test_copies_between_any_two_devices() -> None:
    source = torch.arange(4.0)
    for device in ("npu:0", "npu:1", "cpu"):
        for target in ("npu:0", "npu:1", "cpu"):
            copied = source.to(device).to(target)
            assert copied.device == torch.device(target)
            assert torch.equal(copied.cpu(), source)
            into = torch.zeros(2, 4, dtype=torch.float16, device=target)
            into[1].copy_(source.to(device), non_blocking=True)
            assert into.tolist() == [[0, 0, 0, 0], [0, 1, 2, 3]]


def test_a_copy_between_npus_does_not_share_memory() -> None:
    first = torch.ones(3, device="npu:0")
    second = first.to("npu:1")
    second.zero_()
    assert first.tolist() == [1, 1, 1]


def test_resizing_keeps_values_and_is_seen_by_every_view() -> None:
    tensor = on_npu(4)
    view = tensor[1:]
    storage = tensor.untyped_storage()
    tensor.resize_(8)
    assert tensor.shape == (8,)
    assert tensor[:4].tolist() == [0, 1, 2, 3]
    assert storage.nbytes() == 32
    tensor[1] = 9
    assert view.tolist() == [9, 2, 3]
    assert tensor.device == torch.device("npu:1")
    assert tensor.untyped_storage().device == torch.device("npu:1")


@pytest.mark.parametrize("size", [(0,), (2, 3), (5,)])
def test_an_out_tensor_gets_the_right_size(size: tuple[int, ...]) -> None:
    out = torch.empty(size, device="npu:1")
    storage = out.untyped_storage()
    if size not in ((0,), (2, 3)):
        with pytest.warns(UserWarning, match="was resized"):
            torch.add(on_npu(2, 3), 1, out=out)
    else:
        torch.add(on_npu(2, 3), 1, out=out)
    assert torch.equal(out.cpu(), torch.arange(6.0).view(2, 3) + 1)
    assert out.untyped_storage().data_ptr() == storage.data_ptr()


def test_two_out_tensors_that_share_a_storage_grow_together() -> None:
    least = torch.empty(0, device="npu:1")
    largest = least.detach()
    torch.aminmax(on_npu(2, 2), dim=1, out=(least, largest))
    # What was written last is in both, as on the CPU.
    assert least.tolist() == largest.tolist() == [1, 3]
    assert least.data_ptr() == largest.data_ptr() != 0


def test_metadata_changed_in_place() -> None:
    tensor: Any = on_npu(2, 3)  # torch's stubs lack some forms of set_
    tensor.t_().unsqueeze_(0).squeeze_(0)
    assert torch.equal(tensor.cpu(), torch.arange(6.0).view(2, 3).t())
    tensor.data = torch.ones(2, device="npu:1")
    assert tensor.tolist() == [1, 1]
    tensor.set_(on_npu(4).untyped_storage(), 1, (2,))
    assert tensor.tolist() == [1, 2]
    tensor.set_(on_npu(3))
    assert tensor.tolist() == [0, 1, 2]
    tensor.set_()
    assert tensor.shape == (0,)
    assert tensor.device == torch.device("npu:1")


def test_storages() -> None:
    storage: Any = torch.UntypedStorage(4, device="npu:1")
    assert storage.device == torch.device("npu:1")
    storage.fill_(1)
    storage.resize_(8)
    assert storage.cpu().tolist()[:4] == [1, 1, 1, 1]


def test_numpy() -> None:
    array = np.arange(3, dtype=np.float16)
    assert torch.as_tensor(array, device="npu").tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"Tensor\.cpu\(\)"):
        torch.ones(1, device="npu").numpy()


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, "npu:1"),
        ("npu:3", "npu:3"),
        ("cpu", "cpu"),
        (torch.device("npu:2"), "npu:2"),
        ({"npu:1": "npu:0"}, "npu:0"),
    ],
)
def test_save_and_load(map_location: Any, expected: str) -> None:
    tensor = on_npu(2, 3)
    file = io.BytesIO()
    torch.save({"tensor": tensor, "row": tensor[1]}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=map_location)
    assert loaded["tensor"].device == torch.device(expected)
    assert torch.equal(loaded["tensor"].cpu(), tensor.cpu())
    loaded["tensor"].zero_()
    assert loaded["row"].tolist() == [0, 0, 0]


def test_state_of_a_module_moves_between_cpu_and_npu() -> None:
    there = torch.nn.Linear(2, 3).to("npu:1")
    here = torch.nn.Linear(2, 3)
    here.load_state_dict(there.state_dict())
    assert torch.equal(here.weight, there.weight.cpu())


def test_pickle_and_deepcopy() -> None:
    parameter = torch.nn.Parameter(on_npu(3))
    for twin in (pickle.loads(pickle.dumps(parameter)), copy.deepcopy(parameter)):
        assert isinstance(twin, torch.nn.Parameter)
        assert twin.device == parameter.device
        assert torch.equal(twin, parameter)
        assert twin.data_ptr() != parameter.data_ptr()


def test_pinned_memory() -> None:
    pinned = torch.ones(3).pin_memory()
    assert pinned.is_pinned()
    assert pinned[1:].is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.ones(3).is_pinned()
    assert pinned.to("npu", non_blocking=True).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="pin"):
        torch.empty(3, device="npu", pin_memory=True)


def test_a_tensor_over_foreign_memory() -> None:
    memory = (ctypes.c_int32 * 6)(*range(6))
    tensor = tensor_from_address(ctypes.addressof(memory), (2, 3), torch.int32, 2)
    assert tensor.device == torch.device("npu:2")
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensor.data_ptr() == ctypes.addressof(memory)
    tensor[1] += 10
    assert list(memory) == [0, 1, 2, 13, 14, 15]
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(100)


def test_foreign_memory_is_kept_until_the_last_view_is_gone() -> None:
    class Memory:
        data = (ctypes.c_int32 * 4)()

    memory = Memory()
    gone = weakref.ref(memory)
    tensor = tensor_from_address(ctypes.addressof(memory.data), (4,), torch.int32, 0, keep_alive=memory)
    view, address = tensor[1:], tensor.data_ptr()
    del memory, tensor
    gc.collect()
    assert gone() is not None
    assert view.data_ptr() == address + 4
    del view
    gc.collect()
    assert gone() is None


def test_foreign_memory_may_outlive_the_interpreter(run_python) -> None:  # type: ignore[no-untyped-def]
    result = run_python(
        "import ctypes, torch\n"
        "from triton_dist.runtime.torch_device import tensor_from_address\n"
        "memory = (ctypes.c_int32 * 4)()\n"
        "torch.kept = tensor_from_address(ctypes.addressof(memory), (4,), torch.int32, 0, keep_alive=memory)\n"
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(("address", "shape"), [(0, (1,)), (66, (1,)), (64, (-1,))])
def test_foreign_memory_that_cannot_be_is_refused(address: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"cannot hold torch\.int32|negative size"):
        tensor_from_address(address, shape, torch.int32, 0)


def test_what_a_layout_cannot_do_is_named() -> None:
    with pytest.raises(NotImplementedError, match="layout"):
        torch.eye(3, device="npu").to_sparse()
