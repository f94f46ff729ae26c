"""A host, its streams and their memory: one execution in time, and the order that holds in every execution."""

import contextlib
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Protocol

from lab.streams.capture import Capture
from lab.streams.memory import Contents, Memory
from lab.streams.order import Order
from lab.streams.races import Access, History, Line, Op
from lab.streams.runtime import HOST, MAIN, Event, Graph, ProgramError
from lab.streams.timeline import ZERO, Item, Machine, Timeline
from lab.streams.trace import HostSpan, Kernel, Launched, Span, Trace

OWN_FILES = frozenset(
    {__file__, contextlib.__file__, *(str(Path(__file__).with_name(f"{m}.py")) for m in ("model", "runtime"))}
)


class Device(Protocol):
    """What works through the queues of the streams: `Timeline` in computed time, or something in real time."""

    def submit(self, item: Item) -> None: ...
    def advance(self, until: Fraction) -> None: ...
    def finish(self, item: Item) -> Fraction: ...
    def drain(self) -> None: ...


class Simulation:
    own_files = OWN_FILES  # not the program's

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.order = Order()
        self.history = History()
        self.memory: Contents = Memory()
        self.timeline: Device = Timeline(machine.edge_us)
        self.trace = Trace()
        self.now = ZERO  # the host's clock
        self.records: dict[Event, Item] = {}
        self.last: dict[str, Item] = {}  # what was enqueued last on each stream
        self.host_waited_for: Item | None = None
        self.capturing: Capture | None = None

    def caller(self) -> Line:
        """The line of the program that called into the runtime."""
        frame = sys._getframe()
        while frame.f_code.co_filename in self.own_files and frame.f_back is not None:
            frame = frame.f_back
        return Line(frame.f_code.co_filename, frame.f_lineno)

    def spend(self, us: Fraction | float, label: str, op: Op | None = None) -> None:
        """Let the host be busy for a while, and the device go on meanwhile."""
        start, self.now = self.now, self.now + Fraction(us)
        self.trace.host.append(HostSpan(label, start, self.now, op=op))
        self.timeline.advance(self.now)

    # Enqueue

    def launch(self, kernel: Kernel, on: str) -> None:
        if self.is_captured(on):
            assert self.capturing is not None
            self.capturing.kernel(on, lambda name: self.enqueue(kernel, name(on)))
        else:
            self.spend(self.machine.launch_us, f"launch {kernel.label}")
            self.enqueue(kernel, on)

    def enqueue(self, kernel: Kernel, on: str) -> None:
        op = Op(kernel.label, self.order.step(on), kernel.line)
        self.check(op, kernel.spans)
        item = self.submit(Item(on, self.now, kernel.us, kernel.engine, kernel.share, kernel.compute))
        self.trace.launched.append(Launched(kernel, op, item))

    def submit(self, item: Item) -> Item:
        item.host_waited_for = self.host_waited_for
        self.timeline.submit(item)
        self.last[item.stream] = item
        return item

    def check(self, op: Op, spans: tuple[Span, ...]) -> None:
        accesses = [Access(op, span.tensor, span.start, span.stop, span.is_write) for span in spans]
        self.trace.hazards += self.history.add(op, accesses)

    def record(self, event: Event | None = None, *, on: str = MAIN) -> Event:
        event = event or Event()
        if self.is_captured(on):
            assert self.capturing is not None
            self.capturing.record(event, on, lambda name: self.enqueue_record(event, name(on)))
        else:
            self.spend(self.machine.event_us, f"record on {on}")
            self.enqueue_record(event, on)
        return event

    def enqueue_record(self, event: Event, on: str) -> None:
        self.order.record(event, on)
        self.records[event] = self.submit(Item(on, self.now))

    def wait(self, event: Event, *, on: str) -> None:
        capture = self.capturing
        if capture is not None and (on in capture.streams or event in capture.events):
            capture.wait(event, on, lambda name: self.enqueue_wait(event, name(on)))
        else:
            self.spend(self.machine.event_us, f"wait on {on}")
            self.enqueue_wait(event, on)

    def enqueue_wait(self, event: Event, on: str) -> None:
        self.order.wait(event, on)
        if event in self.records:
            item = self.submit(Item(on, self.now, waits_for=self.records[event]))
            self.trace.edges.append((self.records[event], item))

    # Host

    def query(self, event: Event) -> bool:
        self.refuse_in_capture("query")
        self.spend(self.machine.event_us, f"query {event.name}")
        done = self.is_done(event)
        if done:
            self.order.synchronize_event(event)
        return done

    def is_done(self, event: Event) -> bool:
        return event not in self.records or self.records[event].end is not None

    def synchronize(self, what: Event | str | None = None) -> None:
        self.refuse_in_capture("synchronize")
        if isinstance(what, Event):
            self.order.synchronize_event(what)
            items = [self.records[what]] if what in self.records else []
        elif what is not None:
            self.order.synchronize_stream(what)
            items = [self.last[what]] if what in self.last else []
        else:
            self.order.synchronize_device()
            items = list(self.last.values())
        for item in items:
            self.stand_still(item)

    def stand_still(self, item: Item) -> None:
        """Let the host wait for an item, if it hasn't ended yet."""
        end = self.timeline.finish(item)
        if end > self.now:
            self.trace.host.append(HostSpan("blocked", self.now, end, is_blocked=True))
            self.now, self.host_waited_for = end, item

    def touch_on_host(self, span: Span, label: str) -> None:
        op = Op(label, self.order.step(HOST), self.caller())
        self.check(op, (span,))
        self.spend(0, label, op)

    # Capture

    def is_captured(self, stream: str) -> bool:
        return self.capturing is not None and stream in self.capturing.streams

    def refuse_in_capture(self, what: str) -> None:
        if self.capturing is not None:
            self.capturing.refuse_host(what)

    @contextlib.contextmanager
    def capture(self, *, on: str = MAIN) -> Iterator[Graph]:
        if self.capturing is not None:
            raise ProgramError(f"{on} can't begin a capture: {self.capturing.graph.origin} captures already")
        self.capturing = Capture(on)
        try:
            yield self.capturing.graph
            self.capturing.end()
        finally:
            self.capturing = None

    def replay(self, graph: Graph, *, on: str = MAIN) -> None:
        """One launch for the host. The branches run on streams of their own; the graph begins and ends on `on`."""
        self.spend(self.machine.launch_us, "replay")
        for call in graph.calls:
            call(partial(branch, graph.origin, on))


def branch(origin: str, on: str, stream: str) -> str:
    return on if stream == origin else f"{stream} in the graph"
