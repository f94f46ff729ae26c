"""A run of the engine or the simulator: a track for each request, one for the steps, and counters."""

from collections.abc import Iterator
from typing import Any

from lab.core.trace import StepRecord, Trace
from lab.perfetto.events import Event, Process, document

STEPS = "steps"


def run_document(trace: Trace) -> dict[str, Any]:
    """The trace, its time from 0 of the run's clock.

    A request's track shows its wait for the first step, then a slice for each step that computed tokens of it, and the
    moments at which it was preempted and ended.
    """
    engine, requests = Process(1, "engine"), Process(2, "requests")
    steps = [event for index, step in enumerate(trace.steps) for event in step_events(engine, index, step)]
    return document((engine, steps), (requests, list(request_events(requests, trace))))


def step_events(engine: Process, index: int, step: StepRecord) -> Iterator[Event]:
    start, end = ns(step.start), ns(step.end)
    tokens = step.num_tokens
    yield engine.slice(STEPS, counted(sum(tokens.values())), start, end, step=index, requests=len(tokens))
    yield engine.counter("KV blocks", start, {"used": step.used_blocks})
    yield engine.counter("requests", start, {"running": step.num_running, "waiting": step.num_waiting})


def request_events(requests: Process, trace: Trace) -> Iterator[Event]:
    for request_id, timeline in trace.requests.items():
        if timeline.first_scheduled is not None:
            yield requests.slice(request_id, "queued", ns(timeline.arrival), ns(timeline.first_scheduled))
    for index, step in enumerate(trace.steps):
        start, end = ns(step.start), ns(step.end)
        for request_id in step.preempted:
            yield requests.instant(request_id, "preempted", start, step=index)
        for request_id, n in step.num_tokens.items():
            yield requests.slice(request_id, counted(n), start, end, step=index, num_tokens=n)
    for request_id, timeline in trace.requests.items():
        if timeline.finished is not None and timeline.finish_reason is not None:
            yield requests.instant(request_id, timeline.finish_reason.value, ns(timeline.finished))


def counted(n: int) -> str:
    return f"{n} token" + "s" * (n != 1)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)
