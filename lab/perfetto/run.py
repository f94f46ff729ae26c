"""A run of the engine or the simulator: a track for each request, one for the steps, and counters."""

from typing import Any

from lab.core.trace import Trace
from lab.perfetto.events import SECOND, Process, document

STEPS = "steps"


def run_document(trace: Trace) -> dict[str, Any]:
    """The trace, its time from 0 of the run's clock.

    A request's track shows its wait for the first step, then a slice for each step that computed tokens of it, and the
    moments at which it was preempted and ended.
    """
    engine, requests = Process(1, "engine", SECOND), Process(2, "requests", SECOND)
    add_steps(engine, trace)
    add_requests(requests, trace)
    return document(engine, requests)


def add_steps(engine: Process, trace: Trace) -> None:
    # From its plan to its end a step frees blocks only of requests that end, and when all have ended all are free.
    num_blocks = max((s.free_blocks + (0 if s.finished else s.used_blocks) for s in trace.steps), default=0)
    for index, step in enumerate(trace.steps):
        tokens = step.num_tokens
        total = counted(sum(tokens.values()))
        engine.slice(STEPS, total, step.start, step.end, step=index, requests=len(tokens))
        engine.counter("KV blocks", step.start, {"used": step.used_blocks})
        engine.counter("requests", step.start, {"running": step.num_running, "waiting": step.num_waiting})
        if step.finished:  # the next step may be long in coming
            engine.counter("KV blocks", step.end, {"used": num_blocks - step.free_blocks})
            running = step.num_running - len(step.finished)
            engine.counter("requests", step.end, {"running": running, "waiting": step.num_waiting})


def add_requests(requests: Process, trace: Trace) -> None:
    for request_id, timeline in trace.requests.items():
        if timeline.first_scheduled is not None:
            requests.slice(request_id, "queued", timeline.arrival, timeline.first_scheduled)
    for index, step in enumerate(trace.steps):
        for request_id in step.preempted:
            requests.instant(request_id, "preempted", step.start, step=index)
        for request_id, n in step.num_tokens.items():
            requests.slice(request_id, counted(n), step.start, step.end, step=index, num_tokens=n)
    for request_id, timeline in trace.requests.items():
        if timeline.finished is not None and timeline.finish_reason is not None:
            requests.instant(request_id, timeline.finish_reason.value, timeline.finished)


def counted(n: int) -> str:
    return f"{n} token" + "s" * (n != 1)
