"""Where the wall is, and which setting is farthest from it: bisection over the load and over a knob.

It takes for granted that what is stable under a load is stable under a lower one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lab.sim.cost_model import CostModel
from lab.sim.load import Load
from lab.sim.stability import Criteria, Judgement
from lab.sim.summary import SLO
from lab.sim.trial import Outcome, Setting, Trial, judge_all

RunAll = Callable[[Sequence[Trial]], list[Outcome]]  # runs trials anywhere, and returns their outcomes in order
Judged = list[tuple[Outcome, Judgement]]
CLOSE = 1.02  # the wall is known to 2 %
FASTEST = 4096.0  # at this many times the load there is no wall worth looking for
SLOWEST = 1 / 64  # nor is there under so small a share of it


@dataclass(frozen=True)
class Wall:
    """Where a setting stops being stable, in requests per second."""

    holds: float
    breaks: float  # at most 2 % above; infinite if no wall was found
    because: Judgement  # what is broken there


@dataclass(frozen=True)
class Tuned:
    """The setting that stays stable under the highest load."""

    outcome: Outcome  # of the load asked for, or of a lower one if no setting is stable under that
    rate: float  # of the load asked for, in requests per second
    wall: Wall
    most_seqs: int  # the largest max_num_seqs that is stable under the load of `outcome`, the rest unchanged
    tried: Judged  # all settings under that load

    @property
    def margin(self) -> float:
        """How much more load there may be: 0.5 is half as much again, -0.5 half of it."""
        return self.wall.holds / self.rate - 1


@dataclass(frozen=True)
class NearMiss:
    """No setting is stable under the load; this one comes nearest."""

    outcome: Outcome
    judgement: Judgement
    tried: Judged
    lower: Tuned | None  # what is stable under a load so low that one is; None if none is under the lowest


def tune(
    settings: Sequence[Setting], load: Load, cost: CostModel, criteria: Criteria, run_all: RunAll
) -> Tuned | NearMiss:
    """The best of `settings`. Raises ConfigError for a load that has no rate.

    All run under the load itself, then under higher and higher ones, where those that are no longer stable drop out.
    Of several left at the end the one with the most room in its SLO wins, then the one with the smaller limits. Where
    none is stable under the load itself, the same is done from half of it, a quarter and so on upwards.
    """
    rate = load.rate
    trials = _Trials(load, cost, criteria, run_all)
    asked = trials.run(settings, 1.0)
    tuned = _farthest(asked, 1.0, rate, trials)
    if tuned is not None:
        return tuned
    speed, lower, broken = 1.0, None, asked
    while speed > SLOWEST and lower is None:
        speed /= 2
        tried = trials.run(settings, speed)
        lower = _farthest(tried, speed, rate, trials, broken)
        broken = tried
    return NearMiss(*min(asked, key=lambda pair: pair[1].factor), asked, lower)


def _farthest(
    tried: Judged, speed: float, rate: float, trials: "_Trials", broken: Judged | None = None
) -> Tuned | None:
    """The setting whose wall is farthest, of those stable at `speed` times the load; None if none is.

    `broken` are the settings at twice the speed, if none of them was stable there. That is not asked again: beside
    fewer others, one of them might look better than it is.
    """
    race = _Race(trials, [outcome for outcome, judgement in tried if judgement.stable], broken or [])
    if not race.leaders:
        return None
    holds, breaks = bisect_load(race.holds, speed, 2 * speed if broken else None)
    winner = min(race.leaders, key=lambda o: (strain(o, trials.criteria.slo), _limits(o.setting))).setting
    because = next((judgement for outcome, judgement in race.fallen if outcome.setting == winner), Judgement(()))
    wall = Wall(holds * rate, breaks * rate, because)
    outcome = next(o for o, _ in tried if o.setting == winner)
    return Tuned(outcome, rate, wall, _most_seqs(winner, trials, speed), tried)


def bisect_load(holds: Callable[[float], bool], low: float = 1.0, high: float | None = None) -> tuple[float, float]:
    """The speeds on both sides of the wall: `holds` at the first, as it must at `low`, and not at the second.

    `high`, where it is given, is known not to hold.
    """
    if high is None:
        high = 2 * low
        while holds(high):
            low, high = high, 2 * high
            if low >= FASTEST:
                return low, math.inf
    while high > CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def bisect_knob(holds: Callable[[int], bool], low: int, most: int) -> int:
    """The largest value from `low` to `most` at which `holds`, as it must at `low`."""
    high = low
    while low < most and holds(high := min(2 * low, most)):
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def strain(outcome: Outcome, slo: SLO) -> float:
    """The largest p99 as a share of its limit; 0 without an SLO."""
    return float(max(0.0, *(getattr(outcome.summary, name).p99 / limit for name, limit in vars(slo).items())))


@dataclass(frozen=True)
class _Trials:
    load: Load
    cost: CostModel
    criteria: Criteria
    run_all: RunAll

    def run(self, settings: Sequence[Setting], speed: float) -> Judged:
        outcomes = self.run_all([Trial(s, self.load, self.cost, speed, self.criteria.slo) for s in settings])
        return list(zip(outcomes, judge_all(outcomes, self.criteria), strict=True))


class _Race:
    """Settings under loads that change until the highest is found at which one of them is stable."""

    def __init__(self, trials: _Trials, leaders: list[Outcome], fallen: Judged) -> None:
        self.trials = trials
        self.leaders = leaders  # stable at the highest load so far
        self.fallen = fallen  # at the lowest load so far at which none is stable

    def holds(self, speed: float) -> bool:
        judged = self.trials.run([leader.setting for leader in self.leaders], speed)
        stable = [outcome for outcome, judgement in judged if judgement.stable]
        if stable:
            self.leaders = stable
        else:
            self.fallen = judged
        return bool(stable)


def _most_seqs(setting: Setting, trials: _Trials, speed: float) -> int:
    config = setting.config

    def holds(max_num_seqs: int) -> bool:
        wider = replace(setting, config=replace(config, max_num_seqs=max_num_seqs))
        return trials.run([wider], speed)[0][1].stable

    most = max(config.max_num_seqs, min(config.max_num_batched_tokens, len(trials.load.shapes)))
    return bisect_knob(holds, config.max_num_seqs, most)


def _limits(setting: Setting) -> tuple[int, int]:
    return setting.config.max_num_seqs, setting.config.max_num_batched_tokens
