"""What a run of the model leaves behind: operations with their times, tenants of memory, hazards, and measures; and
what a profiler saw of a device."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from lab.streams.races import Hazard, Line, Op
from lab.streams.runtime import Measures, Tensor
from lab.streams.timeline import ZERO, Item, critical_path, overlap


@dataclass(frozen=True)
class Span:
    """Bytes that a kernel touches."""

    tensor: Tensor
    start: int
    stop: int
    is_write: bool

    @property
    def extent(self) -> tuple[int, int]:
        return self.start, self.stop


@dataclass(frozen=True)
class Kernel:
    """A kernel or copy to launch: what it touches, how long it takes alone, what it does to memory at its end."""

    label: str
    line: Line
    spans: tuple[Span, ...] = ()
    us: Fraction = ZERO
    share: Fraction = Fraction(1)
    engine: str = "kernels"
    compute: Callable[[], None] | None = None
    copied_bytes: int = 0  # from device memory to device memory


@dataclass(frozen=True)
class Launched:
    kernel: Kernel
    op: Op
    item: Item


@dataclass(frozen=True)
class Work:
    """A kernel or copy as a profiler saw it, on the stream of CUDA's number; times in microseconds. `nbytes` is 0 for a
    kernel."""

    name: str
    stream: int
    start: float
    us: float
    nbytes: int = 0

    @property
    def is_device_copy(self) -> bool:
        return "Memcpy DtoD" in self.name


@dataclass(frozen=True)
class HostSpan:
    """What the host did, and from when to when; `op` where it touched memory."""

    label: str
    start: Fraction
    end: Fraction
    is_blocked: bool = False
    op: Op | None = None


@dataclass
class Tenancy:
    """Whose the bytes are, from the allocator's point of view: from the host's malloc to the host's free."""

    tensor: Tensor
    start: int
    stop: int
    since: Fraction
    until: Fraction | None = None


@dataclass(frozen=True)
class Mark:
    """A moment of the run: the host's time, and how much had been launched and done by then."""

    at: Fraction = ZERO
    launched: int = 0
    host: int = 0


@dataclass
class Trace:
    launched: list[Launched] = field(default_factory=list)
    host: list[HostSpan] = field(default_factory=list)
    tenancies: list[Tenancy] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    edges: list[tuple[Item, Item]] = field(default_factory=list)  # a record, and a wait for it
    reserved_bytes: int = 0
    retained_bytes: int = 0
    begin: Mark = Mark()  # of the measured part
    end: Mark | None = None

    def mark(self, at: Fraction) -> Mark:
        return Mark(at, len(self.launched), len(self.host))

    @property
    def measured(self) -> list[Launched]:
        """What was launched in the measured part."""
        return self.launched[self.begin.launched : self.end.launched if self.end else None]

    @property
    def measured_host(self) -> list[HostSpan]:
        return self.host[self.begin.host : self.end.host if self.end else None]

    @property
    def through(self) -> Fraction:
        """When host and device are through with the measured part."""
        ends = [x.item.end for x in self.measured if x.item.end is not None]
        return max([self.begin.at, *ends, *(span.end for span in self.measured_host)])

    def measures(self) -> Measures:
        copied = [x.kernel.copied_bytes for x in self.measured if x.kernel.copied_bytes]
        works = [x.item for x in self.measured if x.item.is_work]
        blocked = [span.end - span.start for span in self.measured_host if span.is_blocked]
        return Measures(
            device_copies=len(copied),
            device_bytes=sum(copied),
            makespan=float(self.through - self.begin.at),
            solo=float(sum(work.solo for work in works)),
            overlap=float(overlap(works)),
            host_blocked=float(sum(blocked)),
            reserved_bytes=self.reserved_bytes,
            retained_bytes=self.retained_bytes,
        )

    def critical_path(self) -> list[Launched]:
        """The operations that the end of the measured part had to wait for, in order."""
        mine = self.measured
        last = max((x.item for x in mine if x.item.is_work), key=lambda item: item.end or ZERO, default=None)
        path = critical_path(last) if last is not None else []
        return [x for item in path for x in mine if x.item is item]
