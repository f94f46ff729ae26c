"""What stands in for `torch.cuda` while code is checked: streams and events of the model, and nothing else.

What isn't here raises Unsupported with its name, so that nothing is guessed.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch

from lab.streams import runtime as program
from lab.streams.runtime import MAIN
from lab.streams_torch.check.refusal import Unknown, refusal, unsupported
from lab.streams_torch.check.source import assigned_name, reader_line
from lab.streams_torch.check.tensor import methods
from lab.streams_torch.check.tracer import Tracer

POLL = "when it turns true is the device's; use synchronize"


class Event:
    standin: "StandIn"

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.event = program.Event(self.standin.new_name("event"))

    def record(self, stream: "Stream | None" = None) -> None:
        self.standin.runtime.record(self.event, on=self.standin.name(stream))

    def wait(self, stream: "Stream | None" = None) -> None:
        self.standin.runtime.wait(self.event, on=self.standin.name(stream))

    def synchronize(self) -> None:
        self.standin.runtime.synchronize(self.event)

    def query(self) -> bool:
        raise unsupported("Event.query", POLL)

    def elapsed_time(self, end: "Event") -> Unknown:
        return Unknown("Event.elapsed_time")


class Stream:
    standin: "StandIn"

    def __init__(self, *args: object, name: str | None = None, **kwargs: object) -> None:
        self.name = name or self.standin.new_name("stream")

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, other: "Stream") -> None:
        self.standin.runtime.wait_stream(other.name, on=self.name)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or self.standin.Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        self.standin.runtime.synchronize(self.name)

    def query(self) -> bool:
        raise unsupported("Stream.query", POLL)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class StandIn:
    """The names of `torch.cuda` for one check, tied to its tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.runtime = tracer.runtime
        self.names: Counter[str] = Counter()
        self.Event: type[Event] = type("Event", (Event,), {"standin": self})
        self.Stream: type[Stream] = type("Stream", (Stream,), {"standin": self})

    def new_name(self, kind: str) -> str:
        """What the reader calls it, as far as the line shows; numbered from the second on."""
        line = reader_line()
        name = (line and assigned_name(line)) or kind
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}#{self.names[name]}"

    def name(self, stream: Stream | None) -> str:
        return self.tracer.current if stream is None else stream.name

    @contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        with self.tracer.on(self.name(stream)):
            yield

    def set_stream(self, stream: Stream | None) -> None:
        self.tracer.current = self.name(stream)

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
            "synchronize": lambda device=None: self.runtime.synchronize(),
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "init": lambda: None,
            "_lazy_init": lambda: None,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda device: None,
            "device": lambda device: nullcontext(),
            "is_current_stream_capturing": lambda: False,
            "_sleep": lambda cycles: self.tracer.launch("_sleep", []),
        }
        others = [name for name in torch.cuda.__all__ if callable(getattr(torch.cuda, name, None))]
        return {name: refusal(f"torch.cuda.{name}") for name in others} | supported


def start_elsewhere(here: int) -> Callable[[threading.Thread], None]:
    """`Thread.start` for threads that do not check: what a thread of the code's own does would not be seen."""
    start = threading.Thread.start

    def start_or_refuse(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            raise unsupported("a thread", "do its work in the thread that is checked")
        start(thread)

    return start_or_refuse


@contextmanager
def standing_in(tracer: Tracer, names: dict[str, Any]) -> Iterator[None]:
    """Put the stand-in in place of `torch.cuda`'s names, also where `names` (a module's) has them already."""
    of_cuda = StandIn(tracer).of_cuda()
    originals = {getattr(torch.cuda, name): value for name, value in of_cuda.items()}
    imported = {name: originals[value] for name, value in names.items() if callable(value) and value in originals}
    with ExitStack() as stack:
        for owner, attributes in (
            (torch.cuda, of_cuda),
            (torch.Tensor, methods(tracer)),
            (threading.Thread, {"start": start_elsewhere(threading.get_ident())}),
        ):
            for name, value in attributes.items():
                stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch.dict(names, imported))
        yield
