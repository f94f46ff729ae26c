"""Peak memory by counting the storages that are alive: exact, and the same on CPU, CUDA and under FakeTensorMode.

A tensor is a view of a storage, and the storage is the memory. `PeakMemory` sees every ATen operation through PyTorch's
`TorchDispatchMode`, adds the bytes of each storage that first appears as a result, and takes them off when the storage
dies. So views and in-place operations cost nothing, and under `FakeTensorMode` a machine without a GPU can ask for the
peak of a model it could not load. What it does not see: the scratch space inside one kernel, the allocator's rounding
(on CUDA to 512 bytes, and a block that is not worth splitting is up to 1 MiB too large), and memory shared with numpy.
On a GPU `tests/gpu` holds it against what the allocator was asked for.

The CPU has no figure to fall back on: PyTorch's CUDA peak is silently 0 there, and tracemalloc sees the 80 bytes of the
Python object in front of a 200 MB tensor.
"""

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lab.model.device import dtype_name

_TORCH = str(Path(torch.__file__).parent) + os.sep


@dataclass(frozen=True)
class LiveTensor:
    """A storage that was alive, by the tensor it came with."""

    op: str  # the operation that allocated it: "aten.mm"
    where: str  # the line of Python that asked for it, as "file.function"; "entry" if it was there before
    shape: tuple[int, ...]
    dtype: str
    nbytes: int  # of the storage


class PeakMemory:
    """Bytes allocated while the block runs, at their highest.

        with PeakMemory(live=weights) as memory:
            model(...)
        memory.peak_bytes, memory.at_peak

    Nothing outside the block counts: not a peak before it, not what was alive at entry. Recorders nest. `device` leaves
    out what lies on any other device. A recorder serves one block; results change no bit of what is computed.
    """

    def __init__(self, live: Iterable[torch.Tensor] | None = None, device: torch.device | None = None) -> None:
        self._counter = _Counter(device, self._grown)
        self._mode = _CountingMode(self._counter)
        self._given = live is not None
        for tensor in live or ():
            self._counter.add(tensor, "entry", "entry", born_here=False)
        self.baseline_bytes = self._counter.absolute  # of `live`, at entry
        self._counter.absolute_peak = self._counter.absolute

    @property
    def peak_bytes(self) -> int:
        """Most bytes alive at once of what was allocated in the block."""
        return self._counter.peak

    @property
    def live_bytes(self) -> int:
        """Bytes allocated in the block and still alive: now, or at its end."""
        return self._counter.current

    @property
    def absolute_peak_bytes(self) -> int | None:
        """Most bytes alive at once, those of `live` included for as long as they live; None if `live` was not given."""
        return self._counter.absolute_peak if self._given else None

    @property
    def at_peak(self) -> tuple[LiveTensor, ...]:
        """What made up `peak_bytes`, largest first."""
        return tuple(sorted(self._counter.at_peak, key=lambda tensor: -tensor.nbytes))

    def _grown(self, tensor: LiveTensor) -> None:
        """Called after each allocation in the block, the tensor's bytes counted; a subclass may raise."""

    def __enter__(self) -> Self:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        self._counter.close()


class _Counter:
    """Which storages are alive and how many bytes that makes.

    Entries are keyed by the identity of the storage's Python object, which PyTorch keeps as long as the storage lives.
    An entry goes in the callback of its weak reference, before the identity can be given to another storage.
    """

    def __init__(self, device: torch.device | None, grown: Callable[[LiveTensor], None]) -> None:
        self._device = device
        self._grown = grown
        self._alive: dict[int, tuple[weakref.ref[Any], LiveTensor, bool]] = {}
        self.current = self.peak = self.absolute = self.absolute_peak = 0
        self.at_peak: tuple[LiveTensor, ...] = ()

    def add(self, tensor: torch.Tensor, op: str, where: str, born_here: bool = True) -> None:
        """Count the tensor's storage until it dies; nothing if it is being counted already."""
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._alive or (self._device is not None and tensor.device != self._device):
            return
        entry = LiveTensor(op, where, tuple(tensor.shape), dtype_name(tensor.dtype), storage.nbytes())
        self._alive[key] = (weakref.ref(storage, lambda _: self._free(key)), entry, born_here)
        self._change(entry.nbytes, born_here)
        if born_here:
            self._grown(entry)

    def resize(self, tensor: torch.Tensor) -> None:
        """Count what a known storage grew by: `resize_`, or an `out=` that was too small."""
        storage = tensor.untyped_storage()
        known = self._alive.get(id(storage))
        if known and known[1].nbytes != storage.nbytes():
            ref, old, born_here = known
            new = replace(old, nbytes=storage.nbytes())
            self._alive[id(storage)] = (ref, new, born_here)
            self._change(new.nbytes - old.nbytes, born_here)
            if born_here and new.nbytes > old.nbytes:
                self._grown(new)

    def close(self) -> None:
        """Stop counting: without the weak references no death changes the figures any more."""
        self._alive.clear()

    def _free(self, key: int) -> None:
        _, tensor, born_here = self._alive.pop(key)
        self._change(-tensor.nbytes, born_here)

    def _change(self, nbytes: int, born_here: bool) -> None:
        self.absolute += nbytes
        self.absolute_peak = max(self.absolute_peak, self.absolute)
        if born_here:
            self.current += nbytes
            if self.current > self.peak:
                self.peak = self.current
                self.at_peak = tuple(tensor for _, tensor, born in self._alive.values() if born)


class _CountingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, counter: _Counter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload) or func.namespace == "prim":  # prim asks, it does not compute
            return func(*args, **kwargs)
        # Under inference_mode a composite operation arrives whole, and what it allocates on its way would go unseen.
        with self:
            out = func.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
        out = func(*args, **kwargs)
        old = {id(tensor.untyped_storage()) for tensor in _tensors((args, kwargs))}
        if func is torch.ops.aten.lift_fresh.default:  # hands on what torch.tensor() made out of sight
            old = set()
        for tensor in _tensors(out):
            if id(tensor.untyped_storage()) in old:  # a view, or written in place
                self._counter.resize(tensor)
            else:
                self._counter.add(tensor, str(func.overloadpacket), _caller())
        return out


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _tensors(item)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))


def _caller() -> str:
    """The "file.function" of the innermost frame outside PyTorch and this file."""
    frame = sys._getframe(1)
    while frame.f_back and (frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith(_TORCH)):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"
