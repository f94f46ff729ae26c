"""PyTorch operations as they are dispatched, enqueued on the model.

Every operator becomes a kernel that reads its arguments and writes its results, on the stream that is current; copies
between host and device, and what makes the host wait, are told apart. Operators without a result of their own memory
are views and touch nothing.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lab.streams.model import ModelRuntime
from lab.streams.races import Line
from lab.streams.runtime import ITEM_BYTES, MAIN, Place, Tensor
from lab.streams.trace import Kernel, Span
from lab.streams_torch.check.operands import aten, operands, touched
from lab.streams_torch.check.source import assigned_name, label, reader_line

KERNEL_US = 10  # made up: hazards don't depend on how long anything takes
COPIES = (aten.copy_.default, aten._to_copy.default, aten.clone.default)
Placing = Callable[[torch.Tensor], Place | None]


class TracedRuntime(ModelRuntime):
    """The model, whose program is the reader's code."""

    last_line = Line("", 0)

    def caller(self) -> Line:
        self.last_line = reader_line() or self.last_line
        return self.last_line


@dataclass
class Storage:
    tensor: Tensor
    references: int = 0


class Tracer(TorchDispatchMode):
    """Traces onto `runtime` what is called inside. `place` says where a tensor lies that is met for the first time,
    None if it is of no interest."""

    def __init__(self, place: Placing) -> None:
        super().__init__()
        self.runtime = TracedRuntime()
        self.place = place
        self.current = MAIN
        self.storages: dict[int, Storage] = {}
        self.seen: set[int] = set()  # tensor objects
        self.failure: BaseException | None = None  # in a finalizer, where Python would only print it

    @contextmanager
    def on(self, stream: str) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func is aten._local_scalar_dense.default:
            self.read_value(args[0])
        result = func(*args, **kwargs)
        used = operands(func, args, kwargs)
        before = {key(x) for x in [*used.reads, *used.writes]}
        fresh = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and key(x) not in before]
        for x in fresh:
            pinned = kwargs.get("pin_memory") or (func is aten._to_copy.default and kwargs.get("non_blocking"))
            self.meet(x, "pinned" if pinned and x.device.type == "cpu" else None)
        writes = [*used.writes, *fresh]
        if func in COPIES:
            self.copy(args[1] if func is aten.copy_.default else args[0], writes[0], args, kwargs)
        elif writes and "empty" not in func._schema.name:
            self.compute(func, args, used.reads, writes)
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor):
                self.hold(x)
        return result

    # Memory

    def meet(self, x: torch.Tensor, place: Place | None = None) -> Tensor | None:
        """The storage of a tensor, allocated on the current stream where it is new; None if it is of no interest."""
        storage = self.storages.get(key(x))
        place = place or self.place(x) if storage is None else None
        if place is not None and x.untyped_storage().nbytes():
            line = self.runtime.caller()
            storage = self.allocate(x, assigned_name(line) or f"tensor of line {line.number}", place)
        return storage.tensor if storage is not None else None

    def adopt(self, x: torch.Tensor, name: str, place: Place) -> None:
        """Take part in what happens to a tensor that was there before, and stays."""
        self.allocate(x, name, place).references = 1

    def allocate(self, x: torch.Tensor, name: str, place: Place) -> Storage:
        numel = ceil(x.untyped_storage().nbytes() / ITEM_BYTES)
        storage = Storage(self.runtime.empty(numel, name, on=self.current, place=place))
        self.storages[key(x)] = storage
        return storage

    def hold(self, x: torch.Tensor) -> None:
        """Count the tensor objects of a storage: it is freed with the last."""
        storage = self.storages.get(key(x))
        if storage is not None and id(x) not in self.seen:
            self.seen.add(id(x))
            storage.references += 1
            weakref.finalize(x, self.drop, id(x), key(x)).atexit = False

    def drop(self, tensor_id: int, storage_key: int) -> None:
        self.seen.discard(tensor_id)
        storage = self.storages[storage_key]
        storage.references -= 1
        if storage.references == 0:
            del self.storages[storage_key]
            try:
                self.runtime.free(storage.tensor)
            except BaseException as error:
                self.failure = error

    def spans(self, func: OpOverload, args: Sequence[Any], x: torch.Tensor, is_write: bool) -> list[Span]:
        tensor = self.meet(x)
        if tensor is None:
            return []
        base, _ = self.runtime.allocator(tensor).span(tensor)
        return [Span(tensor, base + start, base + stop, is_write) for start, stop in touched(func, args, x)]

    # What an operator does

    def compute(
        self, func: OpOverload, args: Sequence[Any], reads: list[torch.Tensor], writes: list[torch.Tensor]
    ) -> None:
        spans = [span for x in reads for span in self.spans(func, args, x, False)]
        spans += [span for x in writes for span in self.spans(func, args, x, True)]
        name = func._schema.name.removeprefix("aten::")
        if any(span.tensor.place == "device" for span in spans):
            self.launch(name, [span for span in spans if span.tensor.place == "device"])
        for span in spans:
            if span.tensor.place != "device":
                self.runtime.touch_on_host(span, label(self.runtime.caller(), name))

    def launch(self, name: str, spans: list[Span], engine: str = "kernels", copied_bytes: int = 0) -> None:
        line = self.runtime.caller()
        kernel = Kernel(
            label(line, name), line, tuple(spans), Fraction(KERNEL_US), engine=engine, copied_bytes=copied_bytes
        )
        self.runtime.launch(kernel, on=self.current)

    def copy(self, source: torch.Tensor, target: torch.Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """As CUDA does it: from pageable memory at once, to pageable memory to its end, else when its turn comes."""
        non_blocking = kwargs.get("non_blocking", False) or (len(args) > 2 and args[2] is True)
        read = self.spans(aten.copy_.default, args, source, False)
        write = self.spans(aten.copy_.default, args, target, True)
        places = {span.tensor.place for span in [*read, *write]}
        if "device" not in places:
            for span in [*read, *write]:
                self.runtime.touch_on_host(span, label(self.runtime.caller(), "copy"))
        elif places == {"device"}:
            is_memcpy = source.dtype == target.dtype and source.is_contiguous() and target.is_contiguous()
            self.launch("copy", [*read, *write], copied_bytes=source.nbytes if is_memcpy and read and write else 0)
        else:
            if any(span.tensor.place == "pageable" for span in read):
                self.runtime.synchronize(self.current)
                for span in read:
                    self.runtime.touch_on_host(span, label(self.runtime.caller(), "copy"))
                read = []
            self.launch("copy", [*read, *write], engine="copies")
            for span in [*read, *write]:
                if span.tensor.place != "device":
                    self.runtime.host_memory.record_stream(span.tensor, self.current)
            if not non_blocking or any(span.tensor.place == "pageable" for span in write):
                self.runtime.synchronize(self.current)

    def read_value(self, x: torch.Tensor) -> None:
        """`item()` and the like: a copy to the host, waited for."""
        spans = self.spans(aten._local_scalar_dense.default, (), x, False)
        if x.device.type != "cpu" or any(span.tensor.place == "device" for span in spans):
            self.launch("item", spans)
            self.runtime.synchronize(self.current)
        else:
            for span in spans:
                self.runtime.touch_on_host(span, label(self.runtime.caller(), "item"))


def key(x: torch.Tensor) -> int:
    return int(x.untyped_storage()._cdata)
