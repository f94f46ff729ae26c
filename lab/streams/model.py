"""The exact model: a program runs once, and every hazard that any execution could have is found.

The timeline gives one execution, that of the machine whose costs it is given, and with it the values that are read.
"""

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from lab.streams.lifetime import Block, CachingAllocator
from lab.streams.order import Clock, join
from lab.streams.races import Access, Hazard, Op
from lab.streams.runtime import HOST, MAIN, Event, Measures, Place, ProgramError, Runtime, Tensor
from lab.streams.simulation import Simulation
from lab.streams.timeline import Machine
from lab.streams.trace import Kernel, Span, Tenancy

HOST_ADDRESSES = 2**60  # lie above all of the device's


class ModelRuntime(Simulation, Runtime):
    """Runs a program on a machine that isn't there; `trace` says what happened and what could have."""

    def __init__(self, machine: Machine | None = None) -> None:
        super().__init__(machine or Machine())
        self.device = CachingAllocator(self.record_free, self.is_done, self.reclaim)
        self.host_memory = CachingAllocator(self.record_free, self.is_done, self.reclaim, HOST_ADDRESSES)

    # Memory

    def empty(self, numel: int, name: str, *, on: str = MAIN, place: Place = "device") -> Tensor:
        if numel < 1:
            raise ProgramError(f"{name} has {numel} elements; it must have at least 1")
        x = Tensor(name, numel, place, on if place == "device" else HOST)
        is_new = self.allocator(x).malloc(x, on if place == "device" else place)
        op = Op(f"allocate {name}", self.order.here(x.home), self.caller(), is_alloc=True)
        self.spend(self.machine.segment_us if is_new else self.machine.malloc_us, op.label, op)
        start, stop = self.allocator(x).span(x)
        self.history.remember(Access(op, x, start, stop, True))
        self.trace.tenancies.append(Tenancy(x, start, stop, self.now))
        self.trace.reserved_bytes = self.device.reserved_bytes
        return x

    def free(self, x: Tensor) -> None:
        allocator, tensor = self.allocator(x), x.storage
        allocator.block(tensor)
        op = Op(f"free {tensor.name}", self.order.here(tensor.home), self.caller(), is_free=True)
        self.trace.hazards += self.history.check_free(op, tensor, allocator.used_on[tensor])
        self.spend(0, op.label, op)
        allocator.free(tensor)
        next(t for t in self.trace.tenancies if t.tensor is tensor).until = self.now
        self.trace.retained_bytes = max(self.trace.retained_bytes, self.device.retained_bytes)

    def record_stream(self, x: Tensor, stream: str) -> None:
        self.allocator(x).record_stream(x, stream)

    def allocator(self, x: Tensor) -> CachingAllocator:
        return self.device if x.place == "device" else self.host_memory

    def record_free(self, stream: str) -> Event:
        return self.record(Event("free"), on=stream)

    def reclaim(self, block: Block) -> None:
        """The host saw these events complete before it hands the block out: what they stand behind is over."""
        known: Clock = {}
        for event in block.events:
            join(known, self.order.recorded[event])
        self.history.forget(block.start, block.stop, known)

    # Work of the device

    def spin(self, us: float, *, on: str = MAIN, share: float = 0.25) -> None:
        self.launch(Kernel("spin", self.caller(), (), Fraction(us), Fraction(share)), on=on)

    def fill(self, x: Tensor, value: float, *, on: str = MAIN, us: float = 10, share: float = 0.25) -> None:
        span = self.span(x, "device", is_write=True)
        write = partial(self.memory.fill, span.extent, float(value))
        label = f"{x.name} = {value:g}"
        self.launch(Kernel(label, self.caller(), (span,), Fraction(us), Fraction(share), compute=write), on=on)

    def add(
        self, out: Tensor, a: Tensor, b: Tensor | float, *, on: str = MAIN, us: float = 10, share: float = 0.25
    ) -> None:
        tensors = [a, b] if isinstance(b, Tensor) else [a]
        if any(x.numel != out.numel for x in tensors):
            raise ProgramError(f"{out.name} = {a.name} + ...: {[x.numel for x in tensors]} elements into {out.numel}")
        spans = [self.span(x, "device", is_write=False) for x in tensors]
        target = self.span(out, "device", is_write=True)
        other = spans[1].extent if isinstance(b, Tensor) else float(b)
        compute = partial(self.memory.add, target.extent, spans[0].extent, other)
        label = f"{out.name} = {a.name} + {b.name if isinstance(b, Tensor) else format(b, 'g')}"
        kernel = Kernel(label, self.caller(), (*spans, target), Fraction(us), Fraction(share), compute=compute)
        self.launch(kernel, on=on)

    def copy(self, dst: Tensor, src: Tensor, *, on: str = MAIN, non_blocking: bool = True) -> None:
        """From pageable memory the host first waits for the stream and copies to a pinned buffer; to it, it waits."""
        if src.numel != dst.numel or "device" not in (src.place, dst.place):
            raise ProgramError(f"copy {src.name} ({src.numel}, {src.place}) to {dst.name} ({dst.numel}, {dst.place})")
        read, write = self.span(src, src.place, is_write=False), self.span(dst, dst.place, is_write=True)
        if src.place == dst.place:
            engine, us, copied = "memory", Fraction(2 * src.nbytes, self.machine.memory_rate), src.nbytes
        else:
            engine = "to device" if dst.place == "device" else "to host"
            us, copied = Fraction(src.nbytes, self.machine.link_rate), 0
        compute = partial(self.memory.copy, write.extent, read.extent)
        spans: tuple[Span, ...] = (read, write)
        if src.place == "pageable":
            self.synchronize(on)
            self.spend(us, f"stage {src.name}")
            self.touch_on_host(read, f"stage {src.name}")
            compute, spans = partial(self.memory.load(read.extent), write.extent), (write,)  # what is there now
        label = f"{dst.name} <- {src.name}"
        self.launch(Kernel(label, self.caller(), spans, us, Fraction(1), engine, compute, copied), on=on)
        for host in (x for x in (src, dst) if x.place != "device"):
            self.host_memory.record_stream(host, on)  # as PyTorch's host allocator does by itself
        if dst.place == "pageable" or not non_blocking:
            self.synchronize(on)

    # Host

    def read(self, x: Tensor) -> float:
        span = self.span(x, "pinned", "pageable", is_write=False)
        self.touch_on_host(span, f"read {x.name}")
        return self.memory.mean(span.extent)

    def write(self, x: Tensor, value: float) -> None:
        span = self.span(x, "pinned", "pageable", is_write=True)
        self.touch_on_host(span, f"{x.name} = {value:g}")
        self.memory.fill(span.extent, float(value))

    def work(self, us: float) -> None:
        self.spend(us, "work")

    def span(self, x: Tensor, *places: Place, is_write: bool) -> Span:
        """The bytes of a tensor. Raises ProgramError if it isn't where it has to be, or was freed."""
        if x.place not in places:
            raise ProgramError(f"{x.name} is in {x.place} memory; this takes {' or '.join(places)}: copy it first")
        return Span(x.storage, *self.allocator(x).span(x), is_write)

    # Measures

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        self.synchronize()
        self.trace.begin = self.trace.mark(self.now)
        yield
        self.trace.end = self.trace.mark(self.now)
        self.synchronize()

    def measures(self) -> Measures:
        self.timeline.drain()
        return self.trace.measures()

    def hazards(self) -> list[Hazard]:
        return self.trace.hazards
