"""CPU threads: a worker per stream, real memory, and really wrong numbers where an edge is missing.

It is the model with another device under it. Order, allocator and hazards are the model's; what runs when is up to
the threads, but for one thing, so that a bug doesn't hide behind a lucky moment: of two operations that nothing orders,
the later one goes first, if it can. That is a legal execution, and for a race the worst.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from queue import SimpleQueue

import torch

from lab.streams.memory import Extent
from lab.streams.model import HOST_ADDRESSES, ModelRuntime
from lab.streams.races import Hazard, Op
from lab.streams.runtime import ITEM_BYTES, Event, ProgramError
from lab.streams.timeline import Item, Machine
from lab.streams.trace import HostSpan, Kernel, Launched

SCALE = 10  # real microseconds for one of the program's, so that sleeps are long beside what Python costs
HELD = 50  # from so many microseconds on an operation doesn't end while the host goes on enqueuing
ARENA = 2**30  # bytes of addresses on either side; only what is touched takes memory
PATIENCE = 30.0  # seconds without an end after which something is wrong with the lab itself

NO_COSTS = Machine(launch_us=0, event_us=0, malloc_us=0, segment_us=0, edge_us=0)


class TensorMemory:
    """Device and host memory, each one tensor of float32 in which an address is a place."""

    def __init__(self) -> None:
        self.device = torch.empty(ARENA // ITEM_BYTES)
        self.host = torch.empty(ARENA // ITEM_BYTES)

    def at(self, extent: Extent) -> torch.Tensor:
        """Raises ProgramError where a program needs more than the arena has."""
        arena, base = (self.host, HOST_ADDRESSES) if extent[0] >= HOST_ADDRESSES else (self.device, 0)
        start, stop = extent[0] - base, extent[1] - base
        if stop > ARENA:
            raise ProgramError(f"{stop} bytes don't fit into {ARENA} bytes: use smaller tensors, or the model")
        return arena[start // ITEM_BYTES : stop // ITEM_BYTES]

    def clear(self) -> None:
        self.device, self.host = torch.empty_like(self.device), torch.empty_like(self.host)

    def fill(self, to: Extent, value: float) -> None:
        self.at(to).fill_(value)

    def add(self, to: Extent, a: Extent, b: Extent | float) -> None:
        torch.add(self.at(a), self.at(b) if isinstance(b, tuple) else b, out=self.at(to))

    def copy(self, to: Extent, source: Extent) -> None:
        self.at(to).copy_(self.at(source))

    def load(self, source: Extent) -> Callable[[Extent], None]:
        contents = self.at(source).clone()

        def store(to: Extent) -> None:
            self.at(to).copy_(contents)

        return store

    def mean(self, of: Extent) -> float:
        return float(self.at(of).mean())


class Workers:
    """The device: a thread per stream, which takes one item after the other from its queue."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.changed = threading.Condition()
        self.queues: dict[str, SimpleQueue[Item | None]] = {}
        self.last: dict[str, Item] = {}
        self.goes_after: defaultdict[Item, list[Item]] = defaultdict(list)
        self.host_is_quiet = False  # it stands still or polls: what it had to enqueue is there
        self.failure: BaseException | None = None

    def now(self) -> Fraction:
        """Since the beginning, in microseconds of the program."""
        return Fraction(round((time.perf_counter() - self.began) * 1e9 / SCALE), 1000)

    def submit(self, item: Item) -> None:
        if item.stream not in self.queues:
            self.queues[item.stream] = SimpleQueue()
            threading.Thread(target=self.work, args=(self.queues[item.stream],), daemon=True).start()
        self.last[item.stream] = item
        self.queues[item.stream].put(item)

    def advance(self, until: Fraction) -> None:
        """Real time goes on by itself."""

    def let(self, host_is_quiet: bool) -> None:
        with self.changed:
            self.host_is_quiet = host_is_quiet
            self.changed.notify_all()

    def finish(self, item: Item) -> Fraction:
        """Let the host stand still until the item has ended. Raises what a worker raised."""
        self.let(host_is_quiet=True)
        self.wait_until(lambda: item.end is not None)
        self.let(host_is_quiet=False)
        assert item.end is not None
        return item.end

    def drain(self) -> None:
        for item in self.last.values():
            self.finish(item)

    def close(self) -> None:
        """Let the threads end when their queues are through."""
        self.let(host_is_quiet=True)
        for queue in self.queues.values():
            queue.put(None)

    def work(self, queue: "SimpleQueue[Item | None]") -> None:
        try:
            while (item := queue.get()) is not None:
                self.perform(item)
        except BaseException as error:  # belongs to the host, which waits
            with self.changed:
                self.failure = self.failure or error
                self.changed.notify_all()

    def perform(self, item: Item) -> None:
        source = item.waits_for
        self.wait_until(lambda: source is None or source.end is not None)
        item.start = self.now()
        sleep(item.solo)
        self.wait_until(lambda: self.may_end(item))
        if item.touch is not None:
            item.touch()
        with self.changed:
            item.end = self.now()
            self.changed.notify_all()

    def may_end(self, item: Item) -> bool:
        waits_for_host = item.solo >= HELD and not self.host_is_quiet
        return not waits_for_host and all(other.end is not None for other in self.goes_after[item])

    def wait_until(self, holds: Callable[[], bool]) -> None:
        with self.changed:
            in_time = self.changed.wait_for(lambda: self.failure is not None or holds(), PATIENCE)
        if self.failure is not None:
            raise self.failure
        if not in_time:
            raise ProgramError(f"nothing ended for {PATIENCE:g} s: the threads wait for one another")


class ThreadRuntime(ModelRuntime):
    """Runs a program on threads. Times are those of the clock, in microseconds of the program (1 is SCALE real ones);
    what the host takes to enqueue is among them."""

    own_files = ModelRuntime.own_files | {__file__}

    def __init__(self) -> None:
        super().__init__(NO_COSTS)
        self.workers = self.timeline = Workers()
        self.memory = TensorMemory()

    def spend(self, us: Fraction | float, label: str, op: Op | None = None) -> None:
        self.workers.let(host_is_quiet=False)
        self.pass_time(us, label, op)

    def work(self, us: float) -> None:
        self.pass_time(us, "work")  # a host that polls and works in turns is still one that polls

    def pass_time(self, us: Fraction | float, label: str, op: Op | None = None) -> None:
        start = self.workers.now()
        sleep(us)
        self.now = self.workers.now()
        self.trace.host.append(HostSpan(label, start, self.now, op=op))

    def query(self, event: Event) -> bool:
        done = super().query(event)
        self.workers.let(host_is_quiet=True)
        return done

    def enqueue(self, kernel: Kernel, on: str) -> None:
        known = len(self.trace.hazards)
        super().enqueue(kernel, on)
        for hazard in self.trace.hazards[known:]:
            self.turn_round(hazard, self.trace.launched[-1])

    def turn_round(self, hazard: Hazard, second: Launched) -> None:
        """Let the first of the two go after the second, unless the second needs it."""
        for first in self.trace.launched:
            if first.op is hazard.first and not self.needs(second, first):
                self.workers.goes_after[first.item].append(second.item)

    def needs(self, second: Launched, first: Launched) -> bool:
        """Whether the second can't run before the first, by the program's order and the pairs turned round already."""
        found, new = {second.item}, [second]
        while new:
            this = new.pop()
            before = [x for x in self.trace.launched if x.op.stamp.before(this.op.stamp)]
            before += [x for x in self.trace.launched if x.item in self.workers.goes_after[this.item]]
            new += [x for x in before if x.item not in found]
            found |= {x.item for x in before}
        return first.item in found

    def close(self) -> None:
        self.workers.close()


def sleep(us: Fraction | float) -> None:
    time.sleep(float(us) * SCALE * 1e-6)
