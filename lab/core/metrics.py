"""Latency and work of a run, as the field defines them.

For tokens at 1.0, 1.1, 1.2, 2.2 and 2.3 s after submit: TTFT 1.0, TPOT 0.325, ITL p50 0.1 and max 1.0. Only ITL shows
the stall: TPOT is one mean per request, ITL is every gap, pooled over requests (vLLM's `bench serve`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub

from lab.core.trace import RequestTimeline, Trace


def gaps(times: Sequence[float]) -> tuple[float, ...]:
    """The times between neighbours."""
    return tuple(map(sub, times[1:], times))


def percentile(samples: Sequence[float], q: float) -> float:
    """The nearest-rank percentile, 0 < q <= 100: always one of the samples, never above their maximum."""
    if not samples:
        raise ValueError("no samples: a percentile needs at least one")
    if not 0 < q <= 100:
        raise ValueError(f"q is {q}; it must be above 0 and at most 100")
    return sorted(samples)[math.ceil(q / 100 * len(samples)) - 1]


@dataclass(frozen=True)
class RequestMetrics:
    """One request that got at least one token; all in seconds.

    TTFT and E2E count from arrival, queueing included. `tpot` is None for a single token.
    """

    queue: float
    ttft: float
    itl: tuple[float, ...]
    tpot: float | None
    e2e: float


def request_metrics(timeline: RequestTimeline) -> RequestMetrics:
    """The metrics of a request that got at least one token. Raises ValueError for one that got none."""
    times = timeline.token_times
    if not times or timeline.first_scheduled is None:
        raise ValueError("the request got no token, so it has no latency")
    span = times[-1] - times[0]
    return RequestMetrics(
        queue=timeline.first_scheduled - timeline.arrival,
        ttft=times[0] - timeline.arrival,
        itl=gaps(times),
        tpot=span / (len(times) - 1) if len(times) > 1 else None,
        e2e=times[-1] - timeline.arrival,
    )


def useful_ratio(trace: Trace) -> float:
    """Useful over computed tokens of the requests that ended: 1.0 if nothing was computed twice.

    Useful are the KV slots that a request needed at its end: prompt and output, less the last token, never fed.
    """
    ended = [r for r in trace.requests.values() if r.token_times]
    useful = sum(r.num_prompt_tokens + len(r.token_times) - 1 for r in ended)
    computed = sum(r.num_computed_tokens for r in ended)
    return useful / computed if computed else 1.0


def longest_gap(trace: Trace) -> float:
    """The longest time in seconds between two tokens of one request; 0 if no request got two."""
    return max((gap for r in trace.requests.values() for gap in gaps(r.token_times)), default=0.0)
