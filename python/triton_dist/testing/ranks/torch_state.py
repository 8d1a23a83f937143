"""What a test can change of torch and of the simulated NPU: noted at a rank's birth, put back after each test."""

from __future__ import annotations

import sys
from typing import Any

State = dict[str, Any]


def _settings(torch: Any) -> dict[str, tuple[Any, Any]]:
    """How to ask for each setting, and how to put it back."""
    return {
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "threads": (torch.get_num_threads, torch.set_num_threads),
        "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
        # Not torch.use_deterministic_algorithms, which imports all of inductor.
        "deterministic": (
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda value: torch._C._set_deterministic_algorithms(value[0], warn_only=value[1]),
        ),
        "precision of products": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        "warnings": (torch.is_warn_always_enabled, torch.set_warn_always),
        "anomalies": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        "flush denormal": (lambda: None, lambda _: torch.set_flush_denormal(False)),
        "autocast on cpu": (
            lambda: torch.is_autocast_enabled("cpu"),
            lambda value: torch.set_autocast_enabled("cpu", value),
        ),
        "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
        "printing": (
            lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
            lambda value: vars(torch._tensor_str.PRINT_OPTS).update(value),
        ),
    }


def snapshot() -> State:
    """The state as it is now; nothing where torch is not loaded. Runs no operator."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    state = {name: get() for name, (get, _) in _settings(torch).items()}
    state["device"] = torch.get_default_device()
    return state


# What the generators of NPUs start from in every process.
_NPU_SEED = 67280421310721


def leave_groups() -> None:
    """Leaves all process groups of torch.distributed."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def restore(state: State) -> None:
    """Puts back what can be put back."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not state:
        return
    for name, (get, put) in _settings(torch).items():
        if get() != state[name] or name == "flush denormal":
            put(state[name])
    npu = getattr(torch, "npu", None)
    if npu is not None:
        npu.manual_seed_all(_NPU_SEED)
        npu.reset_peak_memory_stats()


def is_like(state: State) -> bool:
    """Whether nothing is left that `restore` does not put back."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not state:
        return True
    npu = getattr(torch, "npu", None)
    return (
        torch.get_default_device() == state["device"]
        and not torch.is_inference_mode_enabled()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._len_torch_function_stack() == 0
        and not torch.distributed.is_initialized()
        and (npu is None or npu.memory_allocated() == 0)
    )
