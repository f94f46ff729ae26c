"""How long a step takes, from its plan."""

from dataclasses import dataclass
from typing import Protocol

from lab.core.scheduler import Scheduler, StepPlan


class CostModel(Protocol):
    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        """Seconds that the step takes; the scheduler counts the plan's tokens as computed already."""
        ...


@dataclass(frozen=True)
class LinearCost:
    """A fixed time per step and a time per token: the least that shows what batching and chunking do.

    The defaults are round numbers to calculate with, of no device.
    """

    step_ms: float = 5.0
    token_ms: float = 0.02

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        return (self.step_ms + self.token_ms * plan.total_tokens) / 1e3
