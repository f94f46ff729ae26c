"""Random programs on a few streams, as lists of calls: a runtime can make them, and an oracle can read them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from lab.streams.model import ModelRuntime
from lab.streams.races import Line
from lab.streams.runtime import Event, Tensor
from lab.streams.trace import Kernel

STREAMS = ("a", "b", "c")
NUMEL = 128  # 512 B: a block of its own


@dataclass(frozen=True)
class Call:
    """`what` with what it needs: tensors are (name, first element, one past the last)."""

    what: str
    stream: str = ""
    event: int = -1
    tensor: str = ""
    reads: tuple[tuple[str, int, int], ...] = ()
    writes: tuple[tuple[str, int, int], ...] = ()


@dataclass
class Writer:
    """Writes a random program; short steps that often go together are written together."""

    rng: Random
    frees: bool = False
    views: bool = False
    records: bool = False
    calls: list[Call] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    made: int = 0
    events: int = 0

    def stream(self) -> str:
        return self.rng.choice(STREAMS)

    def empty(self, stream: str) -> str:
        name, self.made = f"t{self.made}", self.made + 1
        self.calls.append(Call("empty", stream, tensor=name))
        self.homes[name] = stream
        return name

    def span(self, name: str) -> tuple[str, int, int]:
        if not self.views or self.rng.random() < 0.5:
            return name, 0, NUMEL
        start = self.rng.randrange(0, NUMEL, NUMEL // 4)
        return name, start, self.rng.randrange(start + NUMEL // 4, NUMEL + 1, NUMEL // 4)

    def kernel(self, stream: str, reads: list[str], writes: list[str]) -> None:
        both = [tuple(self.span(name) for name in names) for names in (reads, writes)]
        self.calls.append(Call("kernel", stream, reads=both[0], writes=both[1]))

    def any_kernel(self) -> None:
        names = list(self.homes)
        reads = self.rng.sample(names, self.rng.randint(0, min(2, len(names))))
        writes = self.rng.sample(names, self.rng.randint(0 if reads else 1, 1))
        self.kernel(self.stream(), reads, writes)

    def event(self) -> int:
        """A new event, or one that exists and will be recorded again."""
        if self.events and self.rng.random() < 0.4:
            return self.rng.randrange(self.events)
        self.events += 1
        return self.events - 1

    def record(self) -> None:
        self.calls.append(Call("record", self.stream(), self.event()))

    def wait(self) -> None:
        self.calls.append(Call("wait", self.stream(), self.event()))

    def wait_stream(self, waiter: str, other: str) -> None:
        event = self.event()
        self.calls += [Call("record", other, event), Call("wait", waiter, event)]

    def synchronize(self) -> None:
        what = self.rng.choice(("sync_event", "sync_stream", "sync_device"))
        self.calls.append(Call(what, self.stream(), self.event()))

    def handoff(self) -> None:
        """Written on one stream and read on another; mostly with the wait."""
        name, (producer, consumer) = self.rng.choice(list(self.homes)), self.rng.sample(STREAMS, 2)
        self.kernel(producer, [], [name])
        if self.rng.random() < 0.7:
            self.wait_stream(consumer, producer)
        self.kernel(consumer, [name], [])

    def recycle(self) -> None:
        """Used on a stream, freed, and its block used again; mostly by one of the ways that are safe."""
        name = self.rng.choice(list(self.homes))
        home, user = self.homes[name], self.stream()
        if self.rng.random() < 0.7:
            self.wait_stream(user, home)
        self.kernel(user, [name], [])
        way = self.rng.random()
        if way < 0.5:
            self.wait_stream(home, user)
        elif way < 0.75 and self.records:
            self.calls.append(Call("record_stream", user, tensor=name))
        self.calls.append(Call("free", tensor=name))
        del self.homes[name]
        new = self.empty(home)
        self.kernel(self.rng.choice([home, home, user]), [], [new])

    def write(self, steps: int) -> list[Call]:
        for _ in range(3):
            self.empty(self.stream())
        ways = [self.any_kernel] * 4 + [self.handoff] * 2 + [self.record, self.wait, self.wait] + [self.synchronize]
        ways += [lambda: self.wait_stream(*self.rng.sample(STREAMS, 2))] * 2
        ways += [self.recycle] * 4 if self.frees else []
        for _ in range(steps):
            self.rng.choice(ways)()
        return self.calls


def perform(
    calls: list[Call], make: Callable[[], ModelRuntime] = ModelRuntime, rng: Random | None = None
) -> ModelRuntime:
    """Make the calls on the model; kernels take random times, far longer than their launch."""
    rt, rng = make(), rng or Random(0)
    tensors: dict[str, Tensor] = {}
    events: dict[int, Event] = {}
    for number, call in enumerate(calls):
        event = events.setdefault(call.event, Event(f"e{call.event}"))
        match call.what:
            case "empty":
                tensors[call.tensor] = rt.empty(NUMEL, call.tensor, on=call.stream)
            case "free":
                rt.free(tensors[call.tensor])
            case "record_stream":
                rt.record_stream(tensors[call.tensor], call.stream)
            case "kernel":
                reads = [rt.span(tensors[n].view(a, b), "device", is_write=False) for n, a, b in call.reads]
                writes = [rt.span(tensors[n].view(a, b), "device", is_write=True) for n, a, b in call.writes]
                us, share = Fraction(rng.randint(20, 200)), Fraction(rng.choice((1, 2, 4)), 4)
                rt.launch(Kernel(f"k{number}", Line("random", number), (*reads, *writes), us, share), on=call.stream)
            case "record":
                rt.record(event, on=call.stream)
            case "wait":
                rt.wait(event, on=call.stream)
            case "sync_event":
                rt.synchronize(event)
            case "sync_stream":
                rt.synchronize(call.stream)
            case "sync_device":
                rt.synchronize()
    return rt
