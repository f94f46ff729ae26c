"""CUDA: the same programs on `torch.cuda`, with PyTorch's own allocator, and what Kineto saw of them.

A kernel is a spin (`torch.cuda._sleep`, calibrated) and then a PyTorch operation. All spins are STRETCH times as long
as the program says: the host must have enqueued the next operations while they last. Times are measured, not divided.
`share` has no effect: a spin runs on one multiprocessor. Hazards are not looked for here; the model knows them.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache

import torch

from lab.model.device import resolve_device
from lab.streams.catalogue import N
from lab.streams.runtime import MAIN, CaptureError, Event, Graph, Measures, Place, ProgramError, Runtime, Tensor
from lab.streams.timeline import Item, overlap
from lab.streams.trace import Work
from lab.streams_torch.profile import profiled

STRETCH = 20  # a host that is put aside for some milliseconds has still enqueued in time
CAPTURE_RULES = {  # in CUDA's error texts
    "unjoined work": "unjoined",
    "dependency created on uncaptured work": "isolation",
    "not permitted when stream is capturing": "unsupported",
}


class CudaRuntime(Runtime):
    """Runs a program on the current GPU. `profile` counts copies and times kernels, at some cost to the host's times.

    Raises DeviceError if there is no GPU.
    """

    def __init__(self, *, stretch: float = STRETCH, profile: bool = True) -> None:
        self.device = resolve_device("cuda")
        self.cycles_per_us = cycles_per_us() * stretch
        self.stretch = stretch
        self.profile = profile
        self.streams: defaultdict[str, torch.cuda.Stream] = defaultdict(torch.cuda.Stream)
        self.tensors: dict[Tensor, torch.Tensor] = {}
        self.events: defaultdict[Event, torch.cuda.Event] = defaultdict(torch.cuda.Event)
        self.graphs: dict[Graph, torch.cuda.CUDAGraph] = {}
        self.works: list[Work] = []
        self.makespan = self.blocked = 0.0
        self.retained = 0
        warm_up()
        torch.cuda.empty_cache()  # so that a freed block is the one that fits best
        torch.cuda.reset_peak_memory_stats()
        self.reserved_before = torch.cuda.memory_reserved()

    # Memory

    def empty(self, numel: int, name: str, *, on: str = MAIN, place: Place = "device") -> Tensor:
        x = Tensor(name, numel, place, on)
        with torch.cuda.stream(self.streams[on]):
            if place == "device":
                self.tensors[x] = torch.empty(numel, device=self.device)
            else:
                self.tensors[x] = torch.empty(numel, pin_memory=place == "pinned")
        return x

    def free(self, x: Tensor) -> None:
        self.at(x)
        del self.tensors[x.storage]
        stats = torch.cuda.memory_stats()
        retained = stats["active_bytes.all.current"] - stats["allocated_bytes.all.current"]
        self.retained = max(self.retained, retained)

    def record_stream(self, x: Tensor, stream: str) -> None:
        self.at(x).record_stream(self.streams[stream])

    def at(self, x: Tensor) -> torch.Tensor:
        """Raises ProgramError after the free."""
        if x.storage not in self.tensors:
            raise ProgramError(f"{x.name} is used after {x.storage.name} was freed: free it later")
        return self.tensors[x.storage][x.start : x.start + x.numel]

    # Work of the device

    def spin(self, us: float, *, on: str = MAIN, share: float = 0.25) -> None:
        with torch.cuda.stream(self.streams[on]):
            torch.cuda._sleep(round(us * self.cycles_per_us))

    def fill(self, x: Tensor, value: float, *, on: str = MAIN, us: float = 10, share: float = 0.25) -> None:
        self.spin(us, on=on)
        with torch.cuda.stream(self.streams[on]):
            self.at(x).fill_(value)

    def add(
        self, out: Tensor, a: Tensor, b: Tensor | float, *, on: str = MAIN, us: float = 10, share: float = 0.25
    ) -> None:
        self.spin(us, on=on)
        with torch.cuda.stream(self.streams[on]):
            torch.add(self.at(a), self.at(b) if isinstance(b, Tensor) else b, out=self.at(out))

    def copy(self, dst: Tensor, src: Tensor, *, on: str = MAIN, non_blocking: bool = True) -> None:
        is_blocking = not non_blocking or "pageable" in (dst.place, src.place)
        begin = time.perf_counter()
        with torch.cuda.stream(self.streams[on]):
            self.at(dst).copy_(self.at(src), non_blocking=non_blocking)
        self.blocked += (time.perf_counter() - begin) * 1e6 if is_blocking else 0

    # Order

    def record(self, event: Event | None = None, *, on: str = MAIN) -> Event:
        event = event or Event()
        self.events[event].record(self.streams[on])
        return event

    def wait(self, event: Event, *, on: str) -> None:
        self.streams[on].wait_event(self.events[event])

    def query(self, event: Event) -> bool:
        return self.events[event].query()

    def synchronize(self, what: Event | str | None = None) -> None:
        begin = time.perf_counter()
        if isinstance(what, Event):
            self.events[what].synchronize()
        elif what is not None:
            self.streams[what].synchronize()
        else:
            torch.cuda.synchronize()
        self.blocked += (time.perf_counter() - begin) * 1e6

    # The host

    def read(self, x: Tensor) -> float:
        return self.at(x).mean().item()

    def write(self, x: Tensor, value: float) -> None:
        self.at(x).fill_(value)

    def work(self, us: float) -> None:
        until = time.perf_counter() + us * self.stretch * 1e-6
        while time.perf_counter() < until:
            pass

    # CUDA graphs

    @contextmanager
    def capture(self, *, on: str = MAIN) -> Iterator[Graph]:
        graph = Graph(on)
        self.graphs[graph] = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self.graphs[graph], stream=self.streams[on]):
                yield graph
        except RuntimeError as error:
            raise capture_error(error) from error

    def replay(self, graph: Graph, *, on: str = MAIN) -> None:
        with torch.cuda.stream(self.streams[on]):
            self.graphs[graph].replay()

    # Measures

    @contextmanager
    def measured(self) -> Iterator[None]:
        torch.cuda.synchronize()
        if not self.profile:
            with self.timed():
                yield
        else:
            with profiled(self.works), self.timed():
                yield

    @contextmanager
    def timed(self) -> Iterator[None]:
        begin, self.blocked = time.perf_counter(), 0.0
        yield
        blocked = self.blocked
        torch.cuda.synchronize()
        self.makespan, self.blocked = (time.perf_counter() - begin) * 1e6, blocked

    def measures(self) -> Measures:
        copies = [work for work in self.works if work.is_device_copy]
        items = [
            Item(str(work.stream), Fraction(0), start=Fraction(work.start), end=Fraction(work.start + work.us))
            for work in self.works
        ]
        return Measures(
            device_copies=len(copies),
            device_bytes=sum(work.nbytes for work in copies),
            makespan=self.makespan,
            solo=sum(work.us for work in self.works) if self.profile else None,
            overlap=float(overlap(items)) if self.profile else None,
            host_blocked=self.blocked,
            reserved_bytes=torch.cuda.max_memory_reserved() - self.reserved_before,
            retained_bytes=self.retained,
        )


def capture_error(error: BaseException) -> BaseException:
    """The rule that the first of the errors broke (the later ones say that the capture is no longer valid)."""
    first = error
    while first.__context__ is not None:
        first = first.__context__
    for text, rule in CAPTURE_RULES.items():
        if text in str(first):
            return CaptureError(rule, str(first).splitlines()[0])
    return error


@cache
def cycles_per_us() -> float:
    """How many cycles `torch.cuda._sleep` takes for a microsecond, on a device that is warm."""
    cycles, rates = 2_000_000, []
    for _ in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        torch.cuda.synchronize()
        rates.append(cycles / (begin.elapsed_time(end) * 1e3))
    return statistics.median(rates[3:])


@cache
def warm_up() -> None:
    """Load every kernel that programs use: the first launch of one may wait for the device, and so hide a race. On the
    host, the first operation on a whole tensor starts threads."""
    x, pinned = torch.zeros(1024, device="cuda"), torch.zeros(1024, pin_memory=True)
    y = torch.empty_like(x)
    torch.add(x, y, out=y)
    torch.add(x, 1, out=y)
    for target, source in ((y, x), (pinned, x), (x, pinned), (torch.empty(1024), x), (x, torch.zeros(1024))):
        target.copy_(source, non_blocking=True)
    torch.zeros(N).fill_(1).mean()
    torch.cuda.synchronize()
