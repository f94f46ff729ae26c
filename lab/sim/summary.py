"""A run in a few numbers: latency, throughput, work done twice, and what the queue waited for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lab.core.metrics import RequestMetrics
from lab.core.plan import WaitReason
from lab.sim.samples import Distribution


@dataclass(frozen=True)
class SLO:
    """Limits in seconds that a request must keep to count for goodput: its TTFT, TPOT, longest gap and E2E."""

    ttft: float = math.inf
    tpot: float = math.inf
    itl: float = math.inf
    e2e: float = math.inf

    def met_by(self, metrics: RequestMetrics) -> bool:
        """Whether a request kept every limit; one token alone has a TPOT of 0."""
        tpot, gap = metrics.tpot or 0.0, max(metrics.itl, default=0.0)
        return metrics.ttft <= self.ttft and tpot <= self.tpot and gap <= self.itl and metrics.e2e <= self.e2e


@dataclass(frozen=True)
class Summary:
    """One run. Times in seconds; `duration` is from the first arrival to the end of the last step.

    - latency over the requests that got a token: TTFT and E2E from arrival, ITL every gap pooled over requests, TPOT a
      mean for each of two tokens or more, queue from arrival to the first step that computes something of it;
    - `useful_ratio`, `recomputed_tokens`: over the same requests, as in `lab.core.metrics.useful_ratio`;
    - `goodput`: requests per second that ended within the SLO, as vLLM's `bench serve` has it;
    - `kv_mean_usage`: share of the pool's blocks in use, averaged over time with steps;
    - `waiting_reasons`: request-steps spent waiting, by reason.
    """

    requests: int
    finished: int
    refused: int
    steps: int
    duration: float
    preemptions: int
    computed_tokens: int
    recomputed_tokens: int
    useful_ratio: float
    output_tokens: int
    output_tokens_per_s: float
    goodput: float
    longest_gap: float
    ttft: Distribution
    itl: Distribution
    tpot: Distribution
    e2e: Distribution
    queue: Distribution
    kv_peak_blocks: int
    kv_mean_usage: float
    max_waiting: int
    waiting_reasons: Mapping[WaitReason, int]
