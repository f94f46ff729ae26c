"""PyTorch's own CUDA sanitizer beside the model: it keeps its books in Python, so that it can be driven without a GPU.

Private API (`torch.cuda._sanitizer`, read at 2.13): a torch that calls it in another way raises TypeError here.
"""

from collections.abc import Callable

from torch.cuda._sanitizer import EventHandler

from lab.streams.model import ModelRuntime
from lab.streams.runtime import MAIN, Event, Place, Runtime, Tensor
from lab.streams.trace import Kernel


def sanitizer_errors(run: Callable[[Runtime], float]) -> int:
    """How many unsynchronised accesses the sanitizer reports for a program."""
    rt = WatchedRuntime()
    run(rt)
    return rt.errors


class WatchedRuntime(ModelRuntime):
    """The model, with every call passed on as PyTorch's hooks would: device tensors only, known by their address."""

    def __init__(self) -> None:
        super().__init__()
        self.handler = EventHandler()  # type: ignore[no-untyped-call]
        self.errors = 0
        self.streams = {MAIN: 0}  # the default stream, which the sanitizer knows

    def stream(self, name: str) -> int:
        if name not in self.streams:
            self.streams[name] = len(self.streams)
            self.handler._handle_stream_creation(self.streams[name])
        return self.streams[name]

    def empty(self, numel: int, name: str, *, on: str = MAIN, place: Place = "device") -> Tensor:
        x = super().empty(numel, name, on=on, place=place)
        if place == "device":
            address = self.device.span(x)[0]
            self.handler._handle_memory_allocation(address)
            self.access(on, set(), {address}, "empty")  # it takes torch.empty for a write
        return x

    def free(self, x: Tensor) -> None:
        if x.place == "device":
            self.handler._handle_memory_deallocation(self.device.span(x.storage)[0])
        super().free(x)

    def enqueue(self, kernel: Kernel, on: str) -> None:
        super().enqueue(kernel, on)
        spans = [span for span in kernel.spans if span.tensor.place == "device"]
        written = {span.start for span in spans if span.is_write}
        self.access(on, {span.start for span in spans} - written, written, kernel.label)

    def access(self, on: str, read: set[int], written: set[int], label: str) -> None:
        aliases: dict[int, list[str]] = {address: [] for address in read | written}
        stream = self.stream(on)
        self.errors += len(self.handler._handle_kernel_launch(stream, read, written, set(), label, aliases))

    def enqueue_record(self, event: Event, on: str) -> None:
        super().enqueue_record(event, on)
        self.handler._handle_event_record(id(event), self.stream(on))

    def enqueue_wait(self, event: Event, on: str) -> None:
        super().enqueue_wait(event, on)
        self.handler._handle_event_wait(id(event), self.stream(on))

    def synchronize(self, what: Event | str | None = None) -> None:
        super().synchronize(what)
        if isinstance(what, Event):
            self.handler._handle_event_synchronization(id(what))
        elif what is not None:
            self.handler._handle_stream_synchronization(self.stream(what))
        else:
            self.handler._handle_device_synchronization()
