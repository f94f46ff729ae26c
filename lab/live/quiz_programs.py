"""Chapter 3: the programs that its quiz asks about."""

from functools import partial
from itertools import chain, combinations

from lab.live.stream_programs import Editable, pipeline
from lab.live.words import same
from lab.streams.catalogue import N
from lab.streams.model import ModelRuntime
from lab.streams.runtime import Runtime
from lab.streams.verdict import Verdict, examine

NEITHER, FIRST, SECOND, BOTH = "none", "after the write", "before the next write", "both"
WANT = 2  # of `hand_over` and `drop`, where nothing goes wrong


def hand_over(rt: Runtime, numel: int = N, wait: str = NEITHER, copies: bool = False, rewrites: bool = False) -> float:
    """The main stream writes x, the side stream uses it, or a copy of it; then x may be written again."""
    x, clone, y = (rt.full(numel, 0, name) for name in ("x", "clone", "y"))
    with rt.measured():
        rt.fill(x, 1, us=200)
        if wait in (FIRST, BOTH):
            rt.wait_stream("main", on="side")
        if copies:
            rt.copy(clone, x, on="side")
        rt.add(y, clone if copies else x, 1, on="side", us=100)
        if wait in (SECOND, BOTH):
            rt.wait_stream("side", on="main")
        if rewrites:
            rt.fill(x, 7, us=50)
    return rt.mean(y)


def drop(rt: Runtime, mend: str) -> float:
    """The side stream reads x, and the main stream frees it and goes on to allocate z."""
    x, y = rt.full(N, 1, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.add(y, x, 1, on="side", us=100)
        if mend == "wait":
            rt.wait_stream("side", on="main")
        if mend == "record_stream":
            rt.record_stream(x, "side")
        rt.free(x)
        rt.fill(rt.empty(N, "z"), 7, us=50)
    return rt.mean(y)


def two_chunks(buffers: int, load: str = "load") -> Editable:
    slots = [f"slot {i + 1}" for i in range(buffers)]
    return Editable("two-chunks", same("two chunks"), partial(pipeline, slots=slots, load=load), 3)


def waits_needed(program: Editable) -> tuple[tuple[tuple[int, int], ...], Verdict]:
    """The fewest waits with which no hazard is left, by trying all, and what the program is with them."""
    streams = [operation.stream for operation in program.operations()]
    pairs = [(i, j) for i, j in combinations(range(len(streams)), 2) if streams[i] != streams[j]]
    for waits in chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)):
        verdict = examine(partial(program.run_with, waits=waits), program.want, ModelRuntime())
        if not verdict.hazards:
            return waits, verdict
    raise AssertionError("with a wait before every operation there is no hazard")
