"""The simulator beside the engine: the same load under the same setting, predicted and run.

Loads below and above what the setting serves, and one on a pool that is too small for it. None of their requests and
limits were in the mix that the cost was fitted to.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lab.checks import calibrate as mix
from lab.checks.calibrate import Calibration, Machine, fit_runs, run_mix
from lab.core import CacheConfig, Loop, Scheduler, SchedulerConfig, Trace
from lab.core.config import require_at_least
from lab.sim.cost_model import CostModel
from lab.sim.load import Load
from lab.sim.simulate import simulate
from lab.sim.stability import Verdict, judge, queue_growth
from lab.sim.summary import Summary
from lab.sim.tally import summarize
from lab.sim.trial import Setting, Trial, run_trial

PROMPT_TOKENS, OUTPUT_TOKENS = (16, 384), (4, 32)
LIMITS = SchedulerConfig(192, 6)
ROOMY, TIGHT = CacheConfig(200), CacheConfig(40)  # blocks of 16: for all 6 at their longest; for 3 of average length
POINTS = ((ROOMY, 0.5), (ROOMY, 0.7), (ROOMY, 1.5), (TIGHT, 0.7))  # the pool, and rho

METRICS: dict[str, Callable[[Summary], float]] = {
    "output_tokens_per_s": lambda summary: summary.output_tokens_per_s,
    "ttft_p50_ms": lambda summary: summary.ttft.p50 * 1e3,
    "ttft_p99_ms": lambda summary: summary.ttft.p99 * 1e3,
    "itl_p50_ms": lambda summary: summary.itl.p50 * 1e3,
    "itl_p99_ms": lambda summary: summary.itl.p99 * 1e3,
}


@dataclass(frozen=True)
class Point:
    """One load on one pool: `METRICS` and the verdict, utilisation aside."""

    num_blocks: int
    rho: float
    rate: float  # requests per second
    predicted: dict[str, float]
    measured: dict[str, float]  # medians of the repeats
    predicted_verdict: Verdict
    verdicts: tuple[Verdict, ...]  # of each repeat

    def error(self, metric: str) -> float:
        """Relative error of the prediction."""
        return self.predicted[metric] / self.measured[metric] - 1


@dataclass(frozen=True)
class Effort:
    """How much is measured: requests under each limit of the mix, requests of each load, and how often all of it."""

    mix: int
    requests: int
    repeats: int

    def within(self, share: float) -> "Effort":
        """So much of it that it takes at most about `share` of its time: fewer repeats first, then fewer requests.

        Never less than `LEAST`, nor more than this.
        """
        repeats = max(1, math.floor(min(1.0, share) * self.repeats))
        left = min(1.0, share * self.repeats / repeats)

        def cut(whole: int, least: int) -> int:
            return min(whole, max(least, math.floor(left * whole)))

        return Effort(cut(self.mix, LEAST.mix), cut(self.requests, LEAST.requests), repeats)


LEAST = Effort(mix=3, requests=10, repeats=1)


def calibrate(
    machine: Machine, *, num_requests: int = 100, repeats: int = 3, seconds: float = math.inf
) -> tuple[Calibration, list[Point], Effort]:
    """Fit a cost to the machine's steps, and hold its predictions against runs of the points.

    The mix and the points take turns, so that whatever else the machine does falls on both. A small mix before is
    warm-up; it tells which loads rho is, and how much can be measured in about `seconds` (see `Effort.within`).
    """
    require_at_least("repeats", repeats, 1)
    require_at_least("num_requests", num_requests, 2)
    load = random_load(num_requests)
    begin = time.perf_counter()
    first = fit_runs([run_mix(machine, LEAST.mix)]).cost
    spent = time.perf_counter() - begin
    served = served_per_s(load, first)
    repeat = spent * mix.REQUESTS / LEAST.mix + sum(num_requests / (min(1.0, rho) * served) for _, rho in POINTS)
    effort = Effort(mix.REQUESTS, num_requests, repeats)
    if repeats * repeat > seconds - spent:
        effort = effort.within((seconds - spent) / (repeats * repeat))
        load = random_load(effort.requests)
    full_speed = served / load.rate
    mixes, runs = [], []
    for _ in range(effort.repeats):
        mixes.append(run_mix(machine, effort.mix))
        runs.append([_run(load, rho * full_speed, cache, machine) for cache, rho in POINTS])
    calibration = fit_runs(mixes)
    points = [
        _compare(load, cache, rho, rho * full_speed, calibration.cost, traces)
        for (cache, rho), traces in zip(POINTS, zip(*runs), strict=True)
    ]
    return calibration, points, effort


def _compare(load: Load, cache: CacheConfig, rho: float, speed: float, cost: CostModel, runs: Sequence[Trace]) -> Point:
    simulated = simulate(load.requests(speed), Scheduler(LIMITS, cache), cost)
    predicted, *measured = (summarize(trace, cache.num_blocks) for trace in (simulated, *runs))
    return Point(
        cache.num_blocks,
        rho,
        speed * load.rate,
        {name: value(predicted) for name, value in METRICS.items()},
        {name: statistics.median(map(value, measured)) for name, value in METRICS.items()},
        _verdict(simulated, predicted),
        tuple(map(_verdict, runs, measured)),
    )


def random_load(num_requests: int, seed: int = 1) -> Load:
    """Poisson arrivals, one a second on average; lengths even between their bounds."""
    rng = random.Random(seed)
    moments = accumulate(rng.expovariate(1.0) for _ in range(num_requests))
    return Load(tuple((moment, rng.randint(*PROMPT_TOKENS), rng.randint(*OUTPUT_TOKENS)) for moment in moments))


def served_per_s(load: Load, cost: CostModel) -> float:
    """Requests that the roomy setting gets done per second if there are always more: rho is the load over this."""
    at_once = Load(tuple((0.0, prompt, output) for _, prompt, output in load.shapes))
    return len(load.shapes) / run_trial(Trial(Setting(LIMITS, ROOMY), at_once, cost)).summary.duration


def _run(load: Load, speed: float, cache: CacheConfig, machine: Machine) -> Trace:
    executor, clock = machine(cache)
    return Loop(Scheduler(LIMITS, cache), executor, clock).run(load.requests(speed))


def _verdict(trace: Trace, summary: Summary) -> Verdict:
    waiting = [(step.start, step.end, step.num_waiting) for step in trace.steps]
    growth = queue_growth(waiting, [timeline.arrival for timeline in trace.requests.values()])
    return judge(summary, growth, summary.output_tokens_per_s).verdict
