"""How long a step takes, from its plan."""

from dataclasses import dataclass
from typing import Protocol

from lab.core.errors import ConfigError
from lab.core.plan import StepPlan
from lab.core.scheduler import Scheduler
from lab.policies.swap import SwapPlan

MAX_SECONDS = 1e6  # for anything in a step: 11 days


def require_time(name: str, value: float, most: float) -> None:
    """Raise `ConfigError` unless `value` is a number from 0 to `most`."""
    if not 0 <= value <= most:  # NaN too
        raise ConfigError(f"{name} is {value}; it must be a number from 0 to {most:g}")


class CostModel(Protocol):
    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        """Seconds that the step takes; the scheduler counts the plan's tokens as computed already."""
        ...


@dataclass(frozen=True)
class LinearCost:
    """A fixed time per step and a time per token: the least that shows what batching and chunking do.

    The defaults are round numbers to calculate with, of no device. Raises ConfigError for a time below 0 or endless.
    """

    step_ms: float = 5.0
    token_ms: float = 0.02

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_time(name.replace("_", "-"), value, 1e3 * MAX_SECONDS)

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        return (self.step_ms + self.token_ms * plan.total_tokens) / 1e3


def context_tokens(plan: StepPlan, scheduler: Scheduler) -> int:
    """Tokens whose KV a step's attention reads: all that each planned request has, once."""
    requests = scheduler.requests
    return sum([requests[request_id].num_computed_tokens for request_id in plan.num_tokens])


@dataclass(frozen=True)
class Roofline:
    """A time per step, per token computed and per token of context read, in seconds.

    From a data sheet these are the weights read once, two operations per weight and token, and the KV read. They are
    added up, as if memory and arithmetic never overlapped: between layers they hardly do, and the sum is at most twice
    the larger part. What kernels fall short of the sheet, launches and the host's work make real steps longer; `fit`
    finds all that in measured steps.
    """

    step_s: float
    token_s: float
    context_s: float

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        context = context_tokens(plan, scheduler)
        return self.step_s + self.token_s * plan.total_tokens + self.context_s * context


@dataclass(frozen=True)
class SwapCost:
    """A step's own cost, and on top of it the copies of KV blocks that the step waits for, as if nothing ran meanwhile.

    `block_bytes` is a block in all layers, `bytes_per_s` the link between device and host, one way at a time.
    """

    step: CostModel
    block_bytes: int
    bytes_per_s: float

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        copies = (*plan.swapped_out, *plan.swapped_in) if isinstance(plan, SwapPlan) else ()
        num_blocks = sum(len(copy.host) for copy in copies)
        return self.step.seconds(plan, scheduler) + num_blocks * self.block_bytes / self.bytes_per_s
