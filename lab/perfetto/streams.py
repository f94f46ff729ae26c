"""A run of a stream program: a track for the host and for each stream, the races, and the memory that is held. Of a run
on CUDA, what the profiler saw of its streams."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from lab.perfetto.events import MICROSECOND, Process, document
from lab.streams.races import Op
from lab.streams.runtime import HOST
from lab.streams.trace import Trace, Work


def streams_document(runs: Sequence[tuple[str, Trace | Sequence[Work]]]) -> dict[str, Any]:
    """Each named run as a process of its own, all from the time 0 of their machines."""
    processes = []
    for pid, (name, run) in enumerate(runs, start=1):
        process = Process(pid, name, MICROSECOND)
        if isinstance(run, Trace):
            add_operations(process, run)
            add_memory(process, run)
        else:
            add_works(process, run)
        processes.append(process)
    return document(*processes)


def add_operations(process: Process, trace: Trace) -> None:
    """What host and streams did, and the hazards where the second of their operations ended."""
    places: dict[Op, tuple[str, Fraction]] = {}  # the track of an operation, and when it ended
    for span in trace.host:
        process.slice(HOST, span.label or "launch", span.start, span.end, blocked=span.is_blocked)
        if span.op is not None:
            places[span.op] = HOST, span.end
    for launched in trace.launched:
        item, kernel = launched.item, launched.kernel
        if item.start is not None and item.end is not None:
            args = {"line": kernel.line.number, "engine": kernel.engine, "copied_bytes": kernel.copied_bytes}
            process.slice(item.stream, kernel.label, item.start, item.end, **args)
            places[launched.op] = item.stream, item.end
    for hazard in trace.hazards:
        if hazard.second in places:
            track, at = places[hazard.second]
            process.instant(track, f"{hazard.kind} with {hazard.first.label}", at)


def add_memory(process: Process, trace: Trace) -> None:
    """The bytes that the program holds, from the host's malloc to the host's free."""
    changes: Counter[Fraction] = Counter()
    for tenancy in trace.tenancies:
        changes[tenancy.since] += tenancy.stop - tenancy.start
        if tenancy.until is not None:
            changes[tenancy.until] -= tenancy.stop - tenancy.start
    held = 0
    for at, change in sorted(changes.items()):
        held += change
        process.counter("memory", at, {"bytes": held})


def add_works(process: Process, works: Sequence[Work]) -> None:
    """What the device did, in order of its start and from the first on."""
    for work in works:
        start = work.start - works[0].start
        process.slice(f"stream {work.stream}", work.name, start, start + work.us, copied_bytes=work.nbytes)
