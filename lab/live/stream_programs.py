"""Chapter 3: programs without a wait, whose reader may put waits between any two of their operations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import cycle

from lab.live.words import Both
from lab.streams.catalogue import N
from lab.streams.model import ModelRuntime
from lab.streams.runtime import Event, Runtime

Step = Callable[[str, str], AbstractContextManager[None]]  # around an operation: its name, and its stream


@dataclass(frozen=True)
class Operation:
    name: str
    stream: str


@dataclass(frozen=True)
class Editable:
    """`run` has every operation in a `Step`, and returns `want` if all goes well."""

    name: str
    title: Both
    run: Callable[[Runtime, Step], float]
    want: float

    def operations(self) -> list[Operation]:
        found: list[Operation] = []

        @contextmanager
        def step(name: str, stream: str) -> Iterator[None]:
            found.append(Operation(name, stream))
            yield

        self.run(ModelRuntime(), step)
        return found

    def run_with(self, rt: Runtime, waits: Sequence[tuple[int, int]]) -> float:
        """Run with waits (i, j), counted from 0: what i's stream holds behind i, j's stream awaits before j.

        An event that j is to wait for but i records later was never recorded when the wait is enqueued: it is no wait.
        """
        events = [(Event(f"after {i + 1}"), i, j) for i, j in waits]
        done = 0

        @contextmanager
        def step(name: str, stream: str) -> Iterator[None]:
            nonlocal done
            for event, _, before in events:
                if before == done:
                    rt.wait(event, on=stream)
            yield
            for event, after, _ in events:
                if after == done:
                    rt.record(event, on=stream)
            done += 1

        return self.run(rt, step)


def handoff(rt: Runtime, step: Step) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    with rt.measured():
        with step("x = 1", "main"):
            rt.fill(x, 1, us=200)
        with step("y = x + 1", "side"):
            rt.add(y, x, 1, on="side", us=100)
        with step("x = 7", "main"):
            rt.fill(x, 7, us=50)
    return rt.mean(y)


def free(rt: Runtime, step: Step) -> float:
    x, y = rt.full(N, 1, "x"), rt.full(N, 0, "y")
    with rt.measured():
        with step("y = x + 1", "side"):
            rt.add(y, x, 1, on="side", us=100)
        with step("free x", "main"):
            rt.free(x)
        with step("z = 7", "main"):
            rt.fill(rt.empty(N, "z"), 7, us=50)
    return rt.mean(y)


def pipeline(rt: Runtime, step: Step, slots: Sequence[str] = ("slot",), load: str = "load") -> float:
    """Two chunks are copied on the stream `load` into the slots by turns, and added up on main, which makes 3."""
    sources = [rt.full(N, i + 1, f"chunk {i + 1}", place="pinned") for i in range(2)]
    buffers, y = [rt.full(N, 0, name) for name in slots], rt.full(N, 0, "y")
    with rt.measured():
        for i, (source, slot) in enumerate(zip(sources, cycle(buffers)), start=1):
            with step(f"{slot.name} <- {source.name}", load):
                rt.copy(slot, source, on=load)
            with step(f"y = y + {slot.name} ({i})", "main"):
                rt.add(y, y, slot, us=60)
    return rt.mean(y)


PROGRAMS = (
    Editable("handoff", Both("一条流写，另一条流读，再改写", "Written here, read there, written again"), handoff, 2),
    Editable("free", Both("另一条流还在用，就释放了", "Freed while another stream still uses it"), free, 2),
    Editable("pipeline", Both("一个缓冲区，边拷边算", "Copy and compute through one buffer"), pipeline, 3),
)
