"""Adds up a run: from a trace that was kept, or as it goes, which takes little memory. Both say the same."""

import math
from collections import Counter
from collections.abc import Mapping

from lab.core.metrics import request_metrics
from lab.core.plan import WaitReason
from lab.core.request import FinishReason, Request
from lab.core.trace import RequestTimeline, StepRecord, Trace
from lab.sim.samples import Samples
from lab.sim.summary import SLO, Summary


def summarize(trace: Trace, num_blocks: int, slo: SLO | None = None) -> Summary:
    """The summary of a trace that was kept. `num_blocks` is the size of the KV pool."""
    tally = Tally(num_blocks, slo)
    for step in trace.steps:
        tally.add_step(step)
    for timeline in trace.requests.values():
        tally.add_request(timeline)
    tally.refused = len(trace.refused)
    return tally.summary()


class Tally:
    """What steps and requests add up to."""

    def __init__(self, num_blocks: int, slo: SLO | None = None) -> None:
        self.num_blocks = num_blocks
        self.slo = slo or SLO()
        self.ttft, self.itl, self.tpot, self.e2e, self.queue = (Samples() for _ in range(5))
        self.waiting_reasons = Counter(dict.fromkeys(WaitReason, 0))
        self.first_arrival, self.end, self.busy, self.block_seconds, self.longest_gap = math.inf, 0.0, 0.0, 0.0, 0.0
        self.steps = self.preemptions = self.computed = self.kv_peak = self.max_waiting = 0
        self.requests = self.finished = self.refused = self.good = 0
        self.output = self.useful = self.computed_for_output = 0

    def add_step(self, step: StepRecord) -> None:
        seconds = step.end - step.start
        self.steps += 1
        self.end = step.end
        self.busy += seconds
        self.preemptions += len(step.preempted)
        self.computed += sum(step.num_tokens.values())
        if step.used_blocks > self.kv_peak:
            self.kv_peak = step.used_blocks
        self.block_seconds += step.used_blocks * seconds
        if step.num_waiting > self.max_waiting:
            self.max_waiting = step.num_waiting
        if step.num_waiting and step.head_waits_for is not None:
            self.waiting_reasons[step.head_waits_for] += 1
            self.waiting_reasons[WaitReason.BEHIND_HEAD] += step.num_waiting - 1

    def add_request(self, timeline: RequestTimeline) -> None:
        """Once for each request, when nothing more will come of it."""
        ended = timeline.finish_reason in (FinishReason.LENGTH, FinishReason.STOP)
        self.requests += 1
        self.finished += ended
        self.first_arrival = min(self.first_arrival, timeline.arrival)
        if not timeline.token_times:
            return
        self.output += len(timeline.token_times)
        self.useful += timeline.num_prompt_tokens + len(timeline.token_times) - 1
        self.computed_for_output += timeline.num_computed_tokens
        metrics = request_metrics(timeline)
        self.ttft.add([metrics.ttft])
        self.itl.add(metrics.itl)
        self.tpot.add([] if metrics.tpot is None else [metrics.tpot])
        self.e2e.add([metrics.e2e])
        self.queue.add([metrics.queue])
        self.longest_gap = max(self.longest_gap, max(metrics.itl, default=0.0))
        self.good += ended and self.slo.met_by(metrics)

    def summary(self) -> Summary:
        duration = self.end - self.first_arrival if self.steps else 0.0
        return Summary(
            requests=self.requests + self.refused,
            finished=self.finished,
            refused=self.refused,
            steps=self.steps,
            duration=duration,
            preemptions=self.preemptions,
            computed_tokens=self.computed,
            recomputed_tokens=self.computed_for_output - self.useful,
            useful_ratio=ratio(self.useful, self.computed_for_output, 1.0),
            output_tokens=self.output,
            output_tokens_per_s=ratio(self.output, duration),
            goodput=ratio(self.good, duration),
            longest_gap=self.longest_gap,
            ttft=self.ttft.distribution(),
            itl=self.itl.distribution(),
            tpot=self.tpot.distribution(),
            e2e=self.e2e.distribution(),
            queue=self.queue.distribution(),
            kv_peak_blocks=self.kv_peak,
            kv_mean_usage=ratio(self.block_seconds, self.busy * self.num_blocks),
            max_waiting=self.max_waiting,
            waiting_reasons=dict(self.waiting_reasons),
        )


def ratio(part: float, whole: float, of_nothing: float = 0.0) -> float:
    return part / whole if whole else of_nothing


class StreamingTrace(Trace):
    """A trace that keeps only the requests that are not over yet; the rest is in its tally.

    A long run takes the memory of the requests that are there at once, and of its `Samples`: about 50 bytes for each
    request and 12 for each step.
    """

    def __init__(self, num_blocks: int, slo: SLO | None = None) -> None:
        super().__init__()
        self.tally = Tally(num_blocks, slo)

    def record_refused(self, request: Request, reason: str) -> None:
        super().record_refused(request, reason)
        self.tally.refused += 1

    def record_step(self, step: StepRecord, sampled: Mapping[str, int]) -> None:
        self.note(step, sampled)
        self.tally.add_step(step)

    def record_finish(self, request_id: str, time: float, reason: FinishReason) -> None:
        super().record_finish(request_id, time, reason)
        self.tally.add_request(self.requests.pop(request_id))
