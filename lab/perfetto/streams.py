"""A run of a stream program: a track for the host and for each stream, the races, and the memory that is held."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from lab.perfetto.events import Event, Process, document
from lab.streams.races import Op
from lab.streams.runtime import HOST
from lab.streams.trace import Trace


def streams_document(runs: Sequence[tuple[str, Trace]]) -> dict[str, Any]:
    """Each named run as a process of its own, all from the time 0 of their machines."""
    processes = [(Process(pid, name), trace) for pid, (name, trace) in enumerate(runs, start=1)]
    return document(*((process, list(stream_events(process, trace))) for process, trace in processes))


def stream_events(process: Process, trace: Trace) -> Iterator[Event]:
    places: dict[Op, tuple[str, int]] = {}  # the track of an operation, and when it ended
    for span in trace.host:
        yield process.slice(HOST, span.label or "launch", ns(span.start), ns(span.end), blocked=span.is_blocked)
        if span.op is not None:
            places[span.op] = HOST, ns(span.end)
    for launched in trace.launched:
        item, kernel = launched.item, launched.kernel
        if item.start is not None and item.end is not None:
            args = {"line": kernel.line.number, "engine": kernel.engine, "copied_bytes": kernel.copied_bytes}
            yield process.slice(item.stream, kernel.label, ns(item.start), ns(item.end), **args)
            places[launched.op] = item.stream, ns(item.end)
    for hazard in trace.hazards:
        if hazard.second in places:
            track, at = places[hazard.second]
            yield process.instant(track, f"{hazard.kind} with {hazard.first.label}", at)
    yield from memory(process, trace)


def memory(process: Process, trace: Trace) -> Iterator[Event]:
    """The bytes that the program holds, from the host's malloc to the host's free."""
    changes: Counter[int] = Counter()
    for tenancy in trace.tenancies:
        changes[ns(tenancy.since)] += tenancy.stop - tenancy.start
        if tenancy.until is not None:
            changes[ns(tenancy.until)] -= tenancy.stop - tenancy.start
    held = 0
    for at, change in sorted(changes.items()):
        held += change
        yield process.counter("memory", at, {"bytes": held})


def ns(microseconds: Fraction) -> int:
    return round(microseconds * 1000)
