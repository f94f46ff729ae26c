"""TIME: when everything happens on a machine with the given costs, in exact fractions of a microsecond.

A stream is a queue: its next item starts when the one before has ended. Operations that run at once on one engine share
it: as long as their shares add up to more than the whole, all go slower by that factor. An operation touches memory at
its end, as a kernel behind a spin does, so that a missing wait gives the wrong value and not a lucky one.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

ZERO = Fraction(0)


@dataclass(frozen=True)
class Machine:
    """Costs of a made-up machine; times in microseconds, rates in bytes per microsecond. Not measured on any device."""

    launch_us: int = 5
    event_us: int = 1  # record or wait, on the host
    malloc_us: int = 1  # from a pool
    segment_us: int = 100  # from the driver
    edge_us: int = 2  # from an event's completion to the start of who waits for it on another stream
    memory_rate: int = 1_000_000
    link_rate: int = 25_000  # between host and device, each way


@dataclass(eq=False)
class Item:
    """Something in a stream's queue: work of `solo` microseconds, or a record (no work), or a wait for a record."""

    stream: str
    issued: Fraction
    solo: Fraction = ZERO
    engine: str = "kernels"
    share: Fraction = Fraction(1)
    touch: Callable[[], None] | None = None
    waits_for: "Item | None" = None
    host_waited_for: "Item | None" = None  # what the host had last stood still for when it issued this

    start: Fraction | None = None
    end: Fraction | None = None
    cause: "Item | None" = None  # what it, or the host that issued it, had to wait for last
    remaining: Fraction = ZERO

    @property
    def is_work(self) -> bool:
        return self.solo > 0


class Timeline:
    """The device up to `now`. The host issues in order of time, so what is past can't change any more."""

    def __init__(self, edge_us: int) -> None:
        self.edge_us = edge_us
        self.now = ZERO
        self.queues: defaultdict[str, deque[Item]] = defaultdict(deque)
        self.last: dict[str, Item] = {}  # the last item that left each queue
        self.running: list[Item] = []

    def submit(self, item: Item) -> None:
        self.advance(item.issued)
        self.queues[item.stream].append(item)
        self.settle()

    def advance(self, until: Fraction) -> None:
        while self.now < until:
            self.step(until)

    def finish(self, item: Item) -> Fraction:
        """Go on until the item has ended, and return when that was."""
        while item.end is None:
            self.step(None)
        return item.end

    def drain(self) -> None:
        """Go on until all that was enqueued has ended."""
        for queue in list(self.queues.values()):
            if queue:
                self.finish(queue[-1])

    def step(self, until: Fraction | None) -> None:
        """Go on to the next moment at which anything changes, or to `until` if that is sooner."""
        rates = self.rates()
        moments = [self.now + item.remaining / rates[item.engine] for item in self.running]
        moments += [self.ready(queue[0]) for queue in self.queues.values() if queue and self.is_near(queue[0])]
        moments += [until] if until is not None else []
        moment = min(moments)
        for item in self.running:
            item.remaining -= (moment - self.now) * rates[item.engine]
        self.now = moment
        for item in [item for item in self.running if item.remaining == 0]:
            self.running.remove(item)
            self.leave(item)
        self.settle()

    def settle(self) -> None:
        """Start, and let pass, all that can at this moment."""
        changed = True
        while changed:
            changed = False
            for queue in list(self.queues.values()):
                if queue and queue[0].start is None and self.may_start(queue[0]):
                    self.enter(queue[0])
                    changed = True

    def may_start(self, item: Item) -> bool:
        source = item.waits_for
        return source is None or (source.end is not None and self.ready(item) <= self.now)

    def is_near(self, item: Item) -> bool:
        """Whether it waits only for the edge from an event that is complete."""
        return item.waits_for is not None and item.waits_for.end is not None and self.ready(item) > self.now

    def ready(self, item: Item) -> Fraction:
        """When a wait is over whose record is complete."""
        source = item.waits_for
        assert source is not None and source.end is not None
        return source.end + (self.edge_us if source.stream != item.stream else 0)

    def enter(self, item: Item) -> None:
        item.start = self.now
        before = self.last.get(item.stream)
        if item.waits_for is not None and self.ready(item) == self.now:
            item.cause = item.waits_for
        elif before is not None and self.now > item.issued:
            item.cause = before
        else:
            item.cause = item.host_waited_for
        if item.is_work:
            item.remaining = item.solo
            self.running.append(item)
        else:
            self.leave(item)

    def leave(self, item: Item) -> None:
        item.end = self.now
        self.queues[item.stream].popleft()
        self.last[item.stream] = item
        if item.touch is not None:
            item.touch()

    def rates(self) -> dict[str, Fraction]:
        load: defaultdict[str, Fraction] = defaultdict(lambda: ZERO)
        for item in self.running:
            load[item.engine] += item.share
        return {engine: 1 / max(total, Fraction(1)) for engine, total in load.items()}


def overlap(works: list[Item]) -> Fraction:
    """Share of the busy time in which at least two of these operations run."""
    starts = [(work.start, 1) for work in works if work.start is not None]
    ends = [(work.end, -1) for work in works if work.end is not None]
    busy = both = ZERO
    depth, last = 0, ZERO
    for at, change in sorted(starts + ends):
        busy += at - last if depth >= 1 else 0
        both += at - last if depth >= 2 else 0
        depth, last = depth + change, at
    return both / busy if busy else ZERO


def critical_path(last: Item) -> list[Item]:
    """The operations that `last` had to wait for, one after the other; between two of them nothing else was awaited."""
    path: list[Item] = []
    item: Item | None = last
    while item is not None:
        path += [item] if item.is_work else []
        item = item.cause
    return path[::-1]
