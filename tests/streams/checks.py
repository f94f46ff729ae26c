"""What must hold on random programs, as functions of the model: tests run them, and the planted faults fail them."""

from collections.abc import Callable
from random import Random

from lab.streams.model import ModelRuntime
from lab.streams.races import Kind
from lab.streams.trace import Span
from tests.streams.oracles import RACES, ancestors, executions_differ, first_by_model, first_by_sanitizer
from tests.streams.random_programs import Writer, perform

Make = Callable[[], ModelRuntime]


def clocks_are_reachability(make: Make, programs: int) -> None:
    for seed in range(programs):
        calls = Writer(Random(seed)).write(15)
        rt = perform(calls, make)
        ops = {launched.op.line.number: launched.op for launched in rt.trace.launched}
        for number, past in ancestors(calls).items():
            for other in ops:
                if other < number:
                    assert ops[other].stamp.before(ops[number].stamp) == (other in past), (seed, other, number)


def first_race_is_the_sanitizers(make: Make, programs: int) -> int:
    """Returns in how many of the programs there was one."""
    racy = 0
    for seed in range(programs):
        calls = Writer(Random(seed)).write(8)
        rt = perform(calls, make)
        theirs, ours = first_by_sanitizer(calls, rt), first_by_model(rt)
        racy += theirs is not None
        assert (theirs is None) == (ours is None), (seed, theirs, ours)
        if theirs is not None and ours is not None:
            assert theirs[0] == ours[0] and theirs[1] <= ours[1], (seed, theirs, ours)
    return racy


def race_means_executions_differ(make: Make, programs: int, frees: bool) -> tuple[int, int]:
    """Returns how many programs were racy, and in how many of these the bytes had changed owners."""
    racy = reused = 0
    for seed in range(programs):
        calls = Writer(Random(seed), frees=frees, views=True).write(2 if frees else 4)
        if sum(call.what == "kernel" for call in calls) > 7:
            continue
        rt = perform(calls, make)
        kinds = {hazard.kind for hazard in rt.trace.hazards} & {*RACES, Kind.USE_AFTER_FREE}
        assert bool(kinds) == executions_differ(calls, rt), (seed, kinds)
        racy += bool(kinds)
        reused += Kind.USE_AFTER_FREE in kinds
    return racy, reused


def every_racing_kernel_is_told(make: Make, programs: int) -> None:
    """A kernel is the second one of a race exactly if it meets an earlier one on some bytes and can't reach it."""
    for seed in range(programs):
        calls = Writer(Random(seed), frees=True, views=True).write(12)
        rt = perform(calls, make)
        past, spans = ancestors(calls), {x.op.line.number: x.kernel.spans for x in rt.trace.launched}
        racing = {
            second
            for second in spans
            for first in spans
            if first < second and first not in past[second] and meet(spans[first], spans[second])
        }
        told = {h.second.line.number for h in rt.trace.hazards if h.kind in (*RACES, Kind.USE_AFTER_FREE)}
        assert told == racing, (seed, told ^ racing)


def meet(a: tuple[Span, ...], b: tuple[Span, ...]) -> bool:
    return any(x.start < y.stop and y.start < x.stop and (x.is_write or y.is_write) for x in a for y in b)


def reclaimed_only_what_was_recorded(make: Make) -> None:
    """`x` is recorded for one of the streams that read it; its block comes back, and the other may still read it."""
    rt = make()
    x = rt.empty(128, "x", on="home")
    rt.spin(300, on="forgotten")
    for stream in ("recorded", "forgotten"):
        rt.add(rt.empty(128, "sum", on=stream), x, 1, on=stream)
    rt.record_stream(x, "recorded")
    rt.free(x)
    rt.work(100)
    z = rt.full(128, 0, "z", on="home")
    assert rt.device.span(z)[0] == rt.trace.tenancies[0].start
    kinds = [(hazard.kind, hazard.first.stream) for hazard in rt.trace.hazards]
    assert kinds == [(Kind.FREED_EARLY, "forgotten"), (Kind.USE_AFTER_FREE, "forgotten")], kinds


def two_rules_suffice(make: Make, programs: int) -> tuple[int, int]:
    """Memory is never used by two owners at once, but for a use that its owner's free didn't wait for, or one that
    didn't wait for its owner's allocation (told as a race if it raced with a use that did).

    Returns how many programs were clean, and in how many memory had two owners.
    """
    clean = reused = 0
    for seed in range(programs):
        rng = Random(seed)
        calls = Writer(rng, frees=True, views=True, records=True).write(8)
        hazards = perform(calls, make, rng).trace.hazards
        freed_early = {hazard.first for hazard in hazards if hazard.kind is Kind.FREED_EARLY}
        touched_early = {hazard.second for hazard in hazards if hazard.kind in (Kind.TOUCHED_EARLY, *RACES)}
        for hazard in hazards:
            if hazard.kind is Kind.USE_AFTER_FREE:
                assert hazard.first in freed_early or hazard.second in touched_early, (seed, hazard)
        clean += not hazards
        reused += any(hazard.kind is Kind.USE_AFTER_FREE for hazard in hazards)
    return clean, reused


def operations_wait_and_engines_hold(make: Make, programs: int) -> None:
    """On the timeline what is ordered doesn't overlap, no engine does more than it can, and times add up."""
    for seed in range(programs):
        rng = Random(seed)
        rt = perform(Writer(rng, frees=True, records=True).write(10), make, rng)
        rt.synchronize()
        launched = rt.trace.launched
        for i, second in enumerate(launched):
            assert second.item.issued <= second.item.start < second.item.end
            assert second.item.end - second.item.start >= second.item.solo
            for first in launched[:i]:
                if first.op.stamp.before(second.op.stamp):
                    assert first.item.end <= second.item.start, (seed, first, second)
        works = [x.item for x in launched]
        moments = sorted({m for work in works for m in (work.start, work.end)})
        area = sum(work.solo * work.share for work in works)
        busy = sum(
            (b - a) * min(1, sum(w.share for w in works if w.start <= a and b <= w.end))
            for a, b in zip(moments, moments[1:])
        )
        assert area == busy, seed
