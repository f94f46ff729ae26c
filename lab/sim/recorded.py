"""A run that was recorded on a real engine, retold by the simulator: how close is it, and which step times fit best?"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lab.core.errors import LabError
from lab.core.metrics import request_metrics
from lab.core.plan import StepPlan
from lab.core.request import Request, SamplingParams
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.sim.cost_model import CostModel, Roofline, context_tokens
from lab.sim.fit import Measured, fit
from lab.sim.samples import Distribution, Samples


class BadRecording(LabError, ValueError):
    """A recording that is not in the format below."""


@dataclass(frozen=True)
class Recorded:
    """One request of a recorded run; times in seconds from the first arrival."""

    request_id: str
    num_prompt_tokens: int
    num_output_tokens: int
    arrival: float
    first_token: float
    last_token: float

    def request(self) -> Request:
        return Request(
            self.request_id, range(self.num_prompt_tokens), SamplingParams(self.num_output_tokens), arrival=self.arrival
        )


def read_recording(path: Path) -> list[Recorded]:
    """Requests in order of arrival from a `requests.jsonl` as LLMServingSim publishes them.

    One object a line, with `input_toks`, `output_toks`, and `queued_ts`, `first_token_ts`, `last_token_ts` in seconds.
    Raises BadRecording.
    """
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows.sort(key=lambda row: row["queued_ts"])
        zero = rows[0]["queued_ts"]
        return [
            Recorded(
                row["request_id"],
                row["input_toks"],
                row["output_toks"],
                *(row[time] - zero for time in ("queued_ts", "first_token_ts", "last_token_ts")),
            )
            for row in rows
        ]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadRecording(f"{path} is no recording of requests: {error!r}; give a requests.jsonl") from error


def latencies(recording: Iterable[Recorded]) -> dict[str, Distribution]:
    """TTFT, TPOT and E2E of the recorded run, in seconds."""
    rows = [
        (
            r.first_token - r.arrival,
            (r.last_token - r.first_token) / (r.num_output_tokens - 1),
            r.last_token - r.arrival,
        )
        for r in recording
    ]
    return _distributions(rows)


def simulated_latencies(recording: Iterable[Recorded], trace: Trace) -> dict[str, Distribution]:
    """The same of the same requests in a simulated run."""
    metrics = [request_metrics(trace.requests[r.request_id]) for r in recording]
    return _distributions([(m.ttft, m.tpot or 0.0, m.e2e) for m in metrics])


def _distributions(rows: Sequence[Sequence[float]]) -> dict[str, Distribution]:
    result = {}
    for name, values in zip(("ttft", "tpot", "e2e"), zip(*rows)):
        samples = Samples()
        samples.add(values)
        result[name] = samples.distribution()
    return result


def mean_error(recording: Sequence[Recorded], trace: Trace) -> float:
    """The mean of |simulated / recorded - 1| over mean, p50, p90, p95 and p99 of TTFT, TPOT and E2E."""
    real, simulated = latencies(recording), simulated_latencies(recording, trace)
    return fmean(
        abs(getattr(simulated[name], statistic) / getattr(real[name], statistic) - 1)
        for name in real
        for statistic in ("mean", "p50", "p90", "p95", "p99")
    )


class NotedCost:
    """A cost model that notes each step: its seconds, and what was in it."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self.steps: list[Measured] = []

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        seconds = self.cost.seconds(plan, scheduler)
        self.steps.append(Measured(seconds, 1, plan.total_tokens, context_tokens(plan, scheduler)))
        return seconds


def fit_to_recording(
    recording: Iterable[Recorded], trace: Trace, steps: Sequence[Measured], prior: Roofline
) -> Roofline:
    """Step times that would give the recorded requests their times, had the steps been those of the simulated `trace`.

    Two measurements per request, arrival to first token and first to last: so many simulated steps, tokens and context
    lie between. A loaded run's steps are alike and can't tell the three times apart, so `prior` joins as three more.
    """
    contents = _Contents(trace, steps)
    measured = [Measured(prior.step_s, 1, 0, 0), Measured(prior.token_s, 0, 1, 0), Measured(prior.context_s, 0, 0, 1)]
    for real in recording:
        simulated = trace.requests[real.request_id]
        first, last = simulated.token_times[0], simulated.token_times[-1]
        measured.append(contents.between(simulated.arrival, first, seconds=real.first_token - real.arrival))
        measured.append(contents.between(first, last, seconds=real.last_token - real.first_token))
    return fit(measured)


class _Contents:
    """What was computed up to any moment of a simulated run; a step's share of it grows evenly from start to end."""

    def __init__(self, trace: Trace, steps: Sequence[Measured]) -> None:
        self._times = [0.0]
        self._totals = [(0.0, 0.0, 0.0)]
        for record, step in zip(trace.steps, steps, strict=True):
            before = self._totals[-1]
            after = (before[0] + step.steps, before[1] + step.tokens, before[2] + step.context)
            self._times += [record.start, record.end]
            self._totals += [before, after]

    def between(self, start: float, stop: float, seconds: float) -> Measured:
        return Measured(seconds, *(b - a for a, b in zip(self._until(start), self._until(stop))))

    def _until(self, moment: float) -> list[float]:
        i = min(bisect_right(self._times, moment), len(self._times) - 1)
        start, stop = self._times[i - 1], self._times[i]
        share = (moment - start) / (stop - start) if stop > start else 0.0
        return [a + share * (b - a) for a, b in zip(self._totals[i - 1], self._totals[i])]
