"""One setting under one load, run to its end: what a map of the stable region is made of.

A `Trial` is all values, so that it can be sent to another process or machine; so is its `Outcome`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.request import Request
from lab.core.trace import StepRecord
from lab.policies import POLICIES
from lab.sim.cost_model import CostModel
from lab.sim.load import Load
from lab.sim.simulate import simulate
from lab.sim.stability import Criteria, Judgement, judge, queue_growth
from lab.sim.summary import SLO, Summary
from lab.sim.tally import StreamingTrace


@dataclass(frozen=True)
class Setting:
    """The knobs: the scheduler's limits, the KV pool, and the policy by its name in `POLICIES`."""

    config: SchedulerConfig
    cache: CacheConfig
    policy: str = "vllm"


@dataclass(frozen=True)
class Trial:
    """What to run: a setting under a load, `speed` times as fast as it is. The SLO is that of goodput."""

    setting: Setting
    load: Load
    cost: CostModel
    speed: float = 1.0
    slo: SLO = SLO()


@dataclass(frozen=True)
class Outcome:
    """What came of a trial; `growth` is its `lab.sim.stability.queue_growth`."""

    setting: Setting
    speed: float
    summary: Summary
    growth: float


def run_trial(trial: Trial) -> Outcome:
    """Simulate a trial. The same trial has the same outcome wherever it is run."""
    setting = trial.setting
    trace = _WatchedTrace(setting.cache.num_blocks, trial.slo)
    simulate(
        trial.load.requests(trial.speed), POLICIES[setting.policy](setting.config, setting.cache), trial.cost, trace
    )
    return Outcome(setting, trial.speed, trace.tally.summary(), queue_growth(trace.waiting, trace.arrivals))


def judge_all(outcomes: Sequence[Outcome], criteria: Criteria) -> list[Judgement]:
    """Judge each by the best throughput among those of its speed."""
    best: dict[float, float] = {}
    for outcome in outcomes:
        best[outcome.speed] = max(best.get(outcome.speed, 0.0), outcome.summary.output_tokens_per_s)
    return [judge(o.summary, o.growth, best[o.speed], criteria) for o in outcomes]


class _WatchedTrace(StreamingTrace):
    """Notes when requests came, and how many waited in each step."""

    def __init__(self, num_blocks: int, slo: SLO) -> None:
        super().__init__(num_blocks, slo)
        self.waiting: list[tuple[float, float, int]] = []
        self.arrivals: list[float] = []

    def record_submit(self, request: Request) -> None:
        super().record_submit(request)
        self.arrivals.append(request.arrival)

    def record_step(self, step: StepRecord, sampled: Mapping[str, int]) -> None:
        super().record_step(step, sampled)
        if step.num_waiting:
            self.waiting.append((step.start, step.end, step.num_waiting))
