"""The rules of CUDA graph capture (CUDA Programming Guide, "Creating a graph using stream capture").

While a stream captures, what is enqueued on it isn't run but noted. Another stream joins by waiting for an event that
was recorded in the capture, and must be waited for by the first one before the end.
"""

from collections.abc import Callable

from lab.streams.order import Order
from lab.streams.runtime import CaptureError, Event, Graph

Call = Callable[[Callable[[str], str]], None]


class Capture:
    """One capture in progress: which streams and events take part, and what was noted."""

    def __init__(self, origin: str) -> None:
        self.graph = Graph(origin)
        self.streams = {origin}
        self.events: set[Event] = set()
        self.order = Order()

    def kernel(self, stream: str, call: Call) -> None:
        self.order.step(stream)
        self.graph.calls.append(call)

    def record(self, event: Event, stream: str, call: Call) -> None:
        self.events.add(event)
        self.order.record(event, stream)
        self.graph.calls.append(call)

    def wait(self, event: Event, stream: str, call: Call) -> None:
        """Raises CaptureError if the event comes from outside: a graph can't wait for what isn't part of it."""
        if event not in self.events:
            raise CaptureError("isolation", f"{stream} captures and waits for {event.name}, recorded outside")
        self.streams.add(stream)
        self.order.wait(event, stream)
        self.graph.calls.append(call)

    def refuse_host(self, what: str) -> None:
        """Raises CaptureError: nothing that is only noted can be waited for."""
        raise CaptureError("unsupported", f"{what} while {self.graph.origin} captures: the host can't wait then")

    def end(self) -> None:
        """Raises CaptureError if a stream that joined has work that the first stream doesn't wait for."""
        clock = self.order.here(self.graph.origin).clock
        for stream in sorted(self.streams):
            if not self.order.here(stream).known_to(clock):
                raise CaptureError("unjoined", f"{stream} joined, and {self.graph.origin} never waits for it")
