"""What stands in for `torch.cuda` while code is checked: streams and events of the model, and nothing else.

What isn't here raises Unsupported with its name, so that nothing is guessed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch

from lab.core.errors import LabError
from lab.streams import runtime as program
from lab.streams.races import Line
from lab.streams.runtime import MAIN
from lab.streams_torch.check.source import assigned_name, reader_line
from lab.streams_torch.check.tracer import Tracer


class Unsupported(LabError, NotImplementedError):
    """Something that can't be followed without a GPU; from here on nothing is known of the program."""


def unsupported(what: str, instead: str = "leave it out of what is checked", line: Line | None = None) -> Unsupported:
    line = line or reader_line()
    return Unsupported(f"line {line.number if line else '?'}: {what} can't be followed without a GPU; {instead}")


class Unknown:
    """A number that would come from the device. It can be passed on and printed; whoever looks at it is told no."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return "?"

    def refuse(self, *args: object) -> Any:
        raise unsupported(f"the value of {self.what}", "check code that doesn't depend on it")

    __bool__ = __int__ = __float__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = refuse


class StandIn:
    """The names of `torch.cuda` for one check, tied to its tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        standin = self
        runtime = tracer.runtime

        names: Counter[str] = Counter()

        def name_for(kind: str) -> str:
            line = reader_line()
            name = (line and assigned_name(line)) or kind
            names[name] += 1
            return name if names[name] == 1 else f"{name}#{names[name]}"

        class Event:
            def __init__(self, *args: object, **kwargs: object) -> None:
                self.event = program.Event(name_for("event"))

            def record(self, stream: "Stream | None" = None) -> None:
                runtime.record(self.event, on=standin.name(stream))

            def wait(self, stream: "Stream | None" = None) -> None:
                runtime.wait(self.event, on=standin.name(stream))

            def synchronize(self) -> None:
                runtime.synchronize(self.event)

            def query(self) -> bool:
                raise unsupported("Event.query", "when it turns true is the device's; use synchronize")

            def elapsed_time(self, end: "Event") -> Unknown:
                return Unknown("Event.elapsed_time")

        class Stream:
            def __init__(self, *args: object, name: str | None = None, **kwargs: object) -> None:
                self.name = name or name_for("stream")

            def wait_event(self, event: Event) -> None:
                event.wait(self)

            def wait_stream(self, other: "Stream") -> None:
                runtime.wait_stream(other.name, on=self.name)

            def record_event(self, event: Event | None = None) -> Event:
                event = event or Event()
                event.record(self)
                return event

            def synchronize(self) -> None:
                runtime.synchronize(self.name)

            def query(self) -> bool:
                raise unsupported("Stream.query", "when it turns true is the device's; use synchronize")

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Stream) and self.name == other.name

            def __hash__(self) -> int:
                return hash(self.name)

        self.Event, self.Stream = Event, Stream

    def name(self, stream: Any) -> str:
        return self.tracer.current if stream is None else str(stream.name)

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        with self.tracer.on(self.name(stream)):
            yield

    def set_stream(self, stream: Any) -> None:
        self.tracer.current = self.name(stream)

    def sleep(self, cycles: int) -> None:
        self.tracer.launch("_sleep", [])

    def of_cuda(self) -> dict[str, Any]:
        """What `torch.cuda` holds during a check: these, and a refusal for every other function of it."""
        supported = {
            "Stream": self.Stream,
            "Event": self.Event,
            "stream": self.stream,
            "StreamContext": self.stream,
            "set_stream": self.set_stream,
            "current_stream": lambda device=None: self.Stream(name=self.tracer.current),
            "default_stream": lambda device=None: self.Stream(name=MAIN),
            "synchronize": lambda device=None: self.tracer.runtime.synchronize(),
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "init": lambda: None,
            "_lazy_init": lambda: None,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda device: None,
            "device": lambda device: nullcontext(),
            "is_current_stream_capturing": lambda: False,
            "_sleep": self.sleep,
        }
        others = [name for name in torch.cuda.__all__ if callable(getattr(torch.cuda, name, None))]
        return {name: refusal(f"torch.cuda.{name}") for name in others} | supported

    def of_tensor(self) -> dict[str, Any]:
        """Methods of tensors that PyTorch would bring to a device that isn't there."""
        tracer = self.tracer

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


def refusal(what: str) -> Callable[..., Any]:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise unsupported(what)

    return refuse


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


@contextmanager
def standing_in(tracer: Tracer, names: dict[str, Any]) -> Iterator[None]:
    """Put the stand-in in place of `torch.cuda`'s names, also where `names` (a module's) has them already."""
    standin = StandIn(tracer)
    of_cuda = standin.of_cuda()
    originals = {getattr(torch.cuda, name): value for name, value in of_cuda.items()}
    imported = {name: originals[value] for name, value in names.items() if callable(value) and value in originals}
    with ExitStack() as stack:
        for owner, attributes in ((torch.cuda, of_cuda), (torch.Tensor, standin.of_tensor())):
            for name, value in attributes.items():
                stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch.dict(names, imported))
        yield
