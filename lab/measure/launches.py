"""How many operations, and on a GPU how many kernels, a piece of work launches."""

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from lab.model.device import synchronize

ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty")


def count_ops(fn: Callable[[], object]) -> int:
    """ATen operations that compute something: no views and no bare allocations. The same on every device."""
    with _CountOps() as counter:
        fn()
    return counter.count


def count_kernels(fn: Callable[[], object], device: torch.device) -> int | None:
    """Kernels, copies and fills that ran on the GPU, by PyTorch's profiler; None on the CPU, which has no launches."""
    if device.type != "cuda":
        return None
    synchronize(device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
        fn()
        synchronize(device)
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events() or ())


class _CountOps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or func.namespace == "prim":
            return func(*args, **kwargs)
        with self:  # under inference_mode a composite operation arrives whole
            out = func.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
        self.count += not func.is_view and func.overloadpacket.__name__ not in ALLOCATIONS
        return func(*args, **kwargs)
