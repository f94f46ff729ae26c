"""A cost model for measured steps: linear in what is in a step, fitted to what the steps took.

`Roofline` has three terms, which a data sheet gives. On a real machine two more show: something is done for each
request of a step whatever its tokens are, and a long chunk's attention grows with query times key.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from lab.core.errors import ConfigError
from lab.core.plan import StepPlan
from lab.core.scheduler import Scheduler
from lab.sim.cost_model import MAX_SECONDS, context_tokens, require_time
from lab.sim.fit import solve


class Terms(NamedTuple):
    """What is in a step."""

    steps: int  # 1; of several steps together, their number
    tokens: int  # computed
    requests: int
    context: int  # tokens whose KV is read
    pairs: int  # of a query and a key, as the causal mask lets through


class MeasuredStep(NamedTuple):
    terms: Terms
    seconds: float


def terms(plan: StepPlan, scheduler: Scheduler) -> Terms:
    """The terms of a plan whose tokens the scheduler counts as computed already."""
    requests = scheduler.requests
    pairs = sum([n * requests[name].num_computed_tokens - n * (n - 1) // 2 for name, n in plan.num_tokens.items()])
    return Terms(1, plan.total_tokens, len(plan.num_tokens), context_tokens(plan, scheduler), pairs)


@dataclass(frozen=True)
class StepCost:
    """Seconds for each of the `Terms`. Raises ConfigError for one that is negative or endless."""

    step_s: float
    token_s: float
    request_s: float
    context_s: float
    pair_s: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_time(name, value, MAX_SECONDS)

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        return self.of(terms(plan, scheduler))

    def of(self, terms: Terms) -> float:
        return (
            self.step_s * terms.steps
            + self.token_s * terms.tokens
            + self.request_s * terms.requests
            + self.context_s * terms.context
            + self.pair_s * terms.pairs
        )


def fit_steps(steps: Sequence[MeasuredStep]) -> StepCost:
    """The cost with the least sum of squared relative errors.

    A term that would come out negative is left out, since no work takes less than no time. Raises ConfigError if the
    steps are too alike to tell the terms apart.
    """
    used = list(range(len(Terms._fields)))
    while True:
        rows = [[step.terms[i] / step.seconds for i in used] for step in steps]
        times = least_squares(rows)
        if min(times) >= 0:
            return StepCost(*(times[used.index(i)] if i in used else 0.0 for i in range(len(Terms._fields))))
        del used[times.index(min(times))]


def least_squares(rows: Sequence[Sequence[float]]) -> list[float]:
    """x for which `rows` x is nearest to 1 in every row."""
    scale = [max(column) or 1.0 for column in zip(*rows)]
    scaled = [[value / s for value, s in zip(row, scale)] for row in rows]
    columns = list(zip(*scaled))
    normal = [[sum(a * b for a, b in zip(one, other)) for other in columns] for one in columns]
    return [x / s for x, s in zip(solve(normal, [sum(column) for column in columns]), scale)]


def load_step_cost(path: Path) -> StepCost:
    """The cost in a file that `lab calibrate` wrote. Raises ConfigError naming the file and what is wrong in it."""
    try:
        cost = json.loads(path.read_text(encoding="utf-8"))["parameters"]["cost"]
        return StepCost(**{field.name: float(cost[field.name]) for field in fields(StepCost)})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise ConfigError(f"{path} is no cost model ({reason}); give a file that `lab calibrate` wrote") from None
