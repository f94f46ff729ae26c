"""The one protocol in which a two-stream program is written: once, for the model, for CPU threads and for CUDA.

Every operation names the stream it is enqueued on (`on="side"`); streams are known by name and made at first use. A
tensor is float32, so that values can really be computed; what is held here is only its name and its place in a storage.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from lab.core.errors import LabError

if TYPE_CHECKING:
    from lab.streams.races import Hazard

MAIN = "main"  # the stream that stands where `on` isn't given
HOST = "host"  # the host beside the streams: it reads and writes host memory in the order of the program
ITEM_BYTES = 4

Place = Literal["device", "pinned", "pageable"]


class ProgramError(LabError, ValueError):
    """A call that no backend can make sense of."""


class CaptureError(ProgramError):
    """A call that breaks a rule of CUDA graph capture; `rule` is its short name."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


@dataclass(frozen=True, eq=False)
class Tensor:
    """`numel` float32 of a storage, from element `start` on. `home` is the stream it was allocated on, or HOST."""

    name: str
    numel: int
    place: Place = "device"
    home: str = MAIN
    start: int = 0
    base: "Tensor | None" = None

    @property
    def storage(self) -> "Tensor":
        """The tensor that was allocated: itself, or the one that this is a view of."""
        return self.base or self

    @property
    def nbytes(self) -> int:
        return self.numel * ITEM_BYTES

    def view(self, start: int, stop: int) -> "Tensor":
        """Elements `start` to `stop`, sharing the storage. Raises ProgramError if they aren't all there."""
        if not 0 <= start < stop <= self.numel:
            raise ProgramError(f"{self.name}[{start}:{stop}] is no view: {self.name} has {self.numel} elements")
        name = f"{self.name}[{start}:{stop}]"
        return Tensor(name, stop - start, self.place, self.home, self.start + start, self.storage)


@dataclass(eq=False)
class Event:
    name: str = "event"


@dataclass(eq=False)
class Graph:
    """What was captured on `origin`: each call can be made again, on streams renamed by the function it is given."""

    origin: str
    calls: list[Callable[[Callable[[str], str]], None]] = field(default_factory=list)


@dataclass(frozen=True)
class Measures:
    """Of the part of a program inside `measured()`; times in microseconds, and None where a backend can't tell."""

    device_copies: int  # from device memory to device memory
    device_bytes: int
    makespan: float | None  # from its beginning until host and device are through
    solo: float | None  # sum of what every operation would take alone
    overlap: float | None  # share of the busy time in which at least two operations run
    host_blocked: float | None  # how long the host stood still, waiting for the device
    reserved_bytes: int | None  # most device memory taken from the driver
    retained_bytes: int | None  # most bytes that were freed but not to be reused yet

    @property
    def speed_up(self) -> float | None:
        """Sum of solo times over makespan: 1.0 is what one stream without a gap gives, whatever `overlap` says."""
        return self.solo / self.makespan if self.solo is not None and self.makespan else None


class Runtime(Protocol):
    """What a program may do. Durations `us` are microseconds; `share` is the part of the device a kernel fills."""

    # Memory. `free` drops the last reference: the allocator may hand the bytes out again, for the same stream.
    def empty(self, numel: int, name: str, *, on: str = MAIN, place: Place = "device") -> Tensor: ...
    def free(self, x: Tensor) -> None: ...
    def record_stream(self, x: Tensor, stream: str) -> None: ...

    # Work of the device. A kernel takes `us`, and reads and writes at its end.
    def spin(self, us: float, *, on: str = MAIN, share: float = 0.25) -> None: ...
    def fill(self, x: Tensor, value: float, *, on: str = MAIN, us: float = 10, share: float = 0.25) -> None: ...
    def add(
        self, out: Tensor, a: Tensor, b: Tensor | float, *, on: str = MAIN, us: float = 10, share: float = 0.25
    ) -> None: ...
    def copy(self, dst: Tensor, src: Tensor, *, on: str = MAIN, non_blocking: bool = True) -> None: ...

    # Order. An event may be recorded again; a wait means the record made last before it, and none is no wait.
    def record(self, event: Event | None = None, *, on: str = MAIN) -> Event: ...
    def wait(self, event: Event, *, on: str) -> None: ...
    def query(self, event: Event) -> bool: ...
    def synchronize(self, what: Event | str | None = None) -> None: ...

    # The host. It reads and writes host memory at once, whatever is still queued.
    def read(self, x: Tensor) -> float: ...
    def write(self, x: Tensor, value: float) -> None: ...
    def work(self, us: float) -> None: ...

    # CUDA graphs.
    def capture(self, *, on: str = MAIN) -> AbstractContextManager[Graph]: ...
    def replay(self, graph: Graph, *, on: str = MAIN) -> None: ...

    # The part that is measured: the device is idle when it begins, and is waited for when it ends.
    def measured(self) -> AbstractContextManager[None]: ...
    def measures(self) -> Measures: ...
    def hazards(self) -> "Sequence[Hazard]":
        """What could go wrong in any execution; nothing from a backend that only sees the one it runs."""
        return ()

    # What follows from the above.
    def wait_stream(self, other: str, *, on: str) -> None:
        """Let `on` wait for all that is queued on `other` now."""
        self.wait(self.record(on=other), on=on)

    def full(self, numel: int, value: float, name: str, *, on: str = MAIN, place: Place = "device") -> Tensor:
        x = self.empty(numel, name, on=on, place=place)
        if place == "device":
            self.fill(x, value, on=on)
        else:
            self.write(x, value)
        return x

    def mean(self, x: Tensor) -> float:
        """Mean of a device tensor when all is done, as `torch.cuda.synchronize(); x.mean().item()` gives it."""
        self.synchronize()
        host = self.empty(x.numel, f"{x.name} on the host", place="pageable")
        self.copy(host, x)
        return self.read(host)
