"""Is a run in the stable region? Criteria with a number and a reason each, and a verdict that names what is broken.

    judge(summary, growth, best_throughput, Criteria(slo=SLO(ttft=1.0, itl=0.05))).verdict

A setting is stable if it does no work twice, lets through what the best setting does under the same load, doesn't let
its queue grow, and keeps the SLO. Where several of these fail the verdict is the first of them, the cause: work done
twice slows everything else, and a long queue or a late token may be no more than what follows.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum

from lab.core.errors import ConfigError
from lab.sim.summary import SLO, Summary


class Verdict(Enum):
    STABLE = "stable"
    THRASH = "thrash"  # it preempts again and again, and computes again what it threw away
    UNDER_USED = "under-used"  # another setting lets more through under this load
    QUEUE_BOUND = "queue-bound"  # the queue grows as long as the load lasts
    SLO_MISS = "slo-miss"


@dataclass(frozen=True)
class Criteria:
    """The limits of the stable region.

    - `preemptions_per_request`: at 1 in 100 a request that was thrown out is the p99 of all;
    - `useful_ratio`: long prompts computed over and over are few preemptions and much work; at 0.95 a twentieth of the
      machine is lost to them;
    - `throughput_share`: output tokens per second over those of the best setting under the same load: one that stays
      calm by admitting too little wastes the machine;
    - `queue_growth`: the share of the arrivals that piles up (see the function): above 0 there is no steady state. By
      chance 400 Poisson requests at rho 0.9 pass 0.05 in 2 simulated runs of 100, but 100 requests at 0.8 in 11;
    - `slo`: kept by the p99 of TTFT, ITL, TPOT and E2E, and by no refused request.
    """

    preemptions_per_request: float = 0.01
    useful_ratio: float = 0.95
    throughput_share: float = 0.9
    queue_growth: float = 0.05
    slo: SLO = SLO()


@dataclass(frozen=True)
class Miss:
    """A broken criterion, its value, and the limit it is on the wrong side of."""

    verdict: Verdict
    criterion: str
    value: float
    limit: float
    unit: str = ""

    @property
    def factor(self) -> float:
        """How many times too large the value is, or too small."""
        larger, smaller = max(self.value, self.limit), min(self.value, self.limit)
        return larger / smaller if smaller > 0 else math.inf

    def __str__(self) -> str:
        sign = ">" if self.value > self.limit else "<"
        return f"{self.criterion} {self.value:.3g}{self.unit} {sign} {self.limit:.3g}{self.unit}"


@dataclass(frozen=True)
class Judgement:
    """What is broken, causes first; nothing if the run is stable."""

    misses: tuple[Miss, ...]

    @property
    def verdict(self) -> Verdict:
        return self.misses[0].verdict if self.misses else Verdict.STABLE

    @property
    def stable(self) -> bool:
        return not self.misses

    @property
    def factor(self) -> float:
        """How far from stable the run is, by its worst miss; 1 if it is stable."""
        return max((miss.factor for miss in self.misses), default=1.0)


def judge(summary: Summary, growth: float, best_throughput: float, criteria: Criteria | None = None) -> Judgement:
    """`growth` is the run's `queue_growth`; `best_throughput`, in output tokens per second, the best under its load."""
    return Judgement(tuple(_misses(summary, growth, best_throughput, criteria or Criteria())))


def _misses(summary: Summary, growth: float, best_throughput: float, criteria: Criteria) -> Iterator[Miss]:
    preemptions = summary.preemptions / max(1, summary.requests)
    share = summary.output_tokens_per_s / best_throughput if best_throughput else 1.0
    if preemptions > criteria.preemptions_per_request:
        yield Miss(Verdict.THRASH, "preemptions per request", preemptions, criteria.preemptions_per_request)
    if summary.useful_ratio < criteria.useful_ratio:
        yield Miss(Verdict.THRASH, "useful / computed tokens", summary.useful_ratio, criteria.useful_ratio)
    if share < criteria.throughput_share:
        yield Miss(Verdict.UNDER_USED, "throughput / best", share, criteria.throughput_share)
    if growth > criteria.queue_growth:
        yield Miss(Verdict.QUEUE_BOUND, "queue growth", growth, criteria.queue_growth)
    if summary.refused:
        yield Miss(Verdict.SLO_MISS, "refused requests", summary.refused, 0)
    for limit in fields(SLO):
        value, most = getattr(summary, limit.name).p99, getattr(criteria.slo, limit.name)
        if value > most:
            yield Miss(Verdict.SLO_MISS, f"{limit.name} p99", value, most, " s")


def parse_slo(text: str) -> SLO:
    """An SLO from "ttft=1s,itl=50ms". Raises ConfigError for what is none, a limit of 0 or one given twice."""
    limits: dict[str, float] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(ttft|tpot|itl|e2e)\s*=\s*(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s)\s*", part)
        seconds = float(match[2]) * {"s": 1.0, "ms": 1e-3}[match[3]] if match else 0.0
        if not match or not seconds or match[1] in limits:
            raise ConfigError(
                f"SLO {text!r}: {part!r} is no limit of its own; write ttft, tpot, itl, e2e like ttft=1s,itl=50ms"
            )
        limits[match[1]] = seconds
    return SLO(**limits)


def queue_growth(waiting: Sequence[tuple[float, float, int]], arrivals: Sequence[float]) -> float:
    """The share of the arrivals that piles up in the second half of the time in which requests come.

    `waiting` is (start, end, requests that wait) of each step, `arrivals` the moments at which requests came, both in
    order. The mean queue of the last quarter less that of the one before, over the requests that come in a quarter:
    1 - 1/rho if requests come rho times as fast as they are served, 0 if the queue has no trend. So is it, for want of
    a rate, if all come at once.
    """
    if not arrivals or arrivals[-1] == arrivals[0]:
        return 0.0
    first, last = arrivals[0], arrivals[-1]
    half, quarter = (first + last) / 2, (last - first) / 4
    before, after = (_mean_queue(waiting, begin, begin + quarter) for begin in (half, half + quarter))
    return (after - before) / (sum(moment >= half for moment in arrivals) / 2)


def _mean_queue(waiting: Sequence[tuple[float, float, int]], begin: float, end: float) -> float:
    """The average over time from `begin` to `end`; nobody waits between steps."""
    spent = (max(0.0, min(stop, end) - max(start, begin)) * n for start, stop, n in waiting)
    return math.fsum(spent) / (end - begin)  # Python's `sum` rounds otherwise from 3.12 on, as in a browser
