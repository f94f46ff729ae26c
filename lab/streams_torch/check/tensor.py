"""Methods of tensors that PyTorch would bring to a device that isn't there, as they are during a check."""

from typing import Any

import torch

from lab.streams_torch.check.refusal import Unknown, refusal, unsupported
from lab.streams_torch.check.tracer import Tracer


def methods(tracer: Tracer) -> dict[str, Any]:
    """By name; those that concern streams and places are tied to the tracer."""

    def record_stream(x: torch.Tensor, stream: Any) -> None:
        tensor = tracer.meet(x)
        if tensor is not None:
            tracer.runtime.record_stream(tensor, stream.name)

    def is_pinned(x: torch.Tensor, device: object = None) -> bool:
        tensor = tracer.meet(x)
        return tensor is not None and tensor.place == "pinned"

    def pin_memory(x: torch.Tensor, device: object = None) -> torch.Tensor:
        return x if is_pinned(x) else torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x)

    def item(x: torch.Tensor) -> Unknown:
        tracer.read_value(x)
        return Unknown("Tensor.item")

    return {
        "record_stream": record_stream,
        "is_pinned": is_pinned,
        "pin_memory": pin_memory,
        "item": item,
        "copy_": copy_,
        "to": to,
        "cuda": lambda x, device=None, non_blocking=False: to(x, device or "cuda", non_blocking=non_blocking),
        "contiguous": contiguous,
        "__getitem__": getitem,
        "__setitem__": setitem,
        "backward": refusal("Tensor.backward"),
        "numpy": refusal("Tensor.numpy"),
        "tolist": refusal("Tensor.tolist"),
    }


# PyTorch does these under a guard of the device, and a CPU build has none for CUDA.


def copy_(x: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return torch.ops.aten.copy_(x, source, non_blocking)


def to(x: torch.Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> torch.Tensor:
    if args and isinstance(args[0], torch.Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
    is_here = device is None or (device.type, device.index or 0) == (x.device.type, x.device.index or 0)
    if is_here and dtype in (None, x.dtype) and not copy:
        return x
    return torch.ops.aten._to_copy(x, device=device or x.device, dtype=dtype or x.dtype, non_blocking=non_blocking)


def contiguous(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)


def getitem(x: torch.Tensor, index: Any) -> torch.Tensor:
    items = list(index) if isinstance(index, tuple) else [index]
    dims = sum(item is not None and item is not Ellipsis for item in items)
    if Ellipsis in [item for item in items if not isinstance(item, torch.Tensor)]:
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * (x.dim() - dims)
    dim = 0
    gathered: list[torch.Tensor | None] = []
    for item in items:
        if item is None:
            x = x.unsqueeze(dim)
        elif isinstance(item, slice):
            x = torch.ops.aten.slice(x, dim, item.start, item.stop, 1 if item.step is None else item.step)
        elif isinstance(item, int):
            x = x.select(dim, item)
            continue
        else:
            gathered += [None] * (dim - len(gathered)) + [torch.as_tensor(item, device=x.device)]
        dim += 1
    return torch.ops.aten.index(x, gathered) if gathered else x


def setitem(x: torch.Tensor, index: Any, value: Any) -> None:
    items = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(item, (int, slice, type(None), type(Ellipsis))) for item in items):
        if len(items) > 1:
            raise unsupported("an assignment with several indices, some of them tensors")
        torch.ops.aten.index_put_(x, [torch.as_tensor(index, device=x.device)], torch.as_tensor(value, device=x.device))
    elif isinstance(value, torch.Tensor):
        getitem(x, index).copy_(value)
    else:
        getitem(x, index).fill_(value)
