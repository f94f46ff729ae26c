"""A run without a model: lab.core's loop on a clock that moves only when a step takes time."""

from collections.abc import Iterable

from lab.core.arrivals import Arrivals
from lab.core.loop import Loop
from lab.core.plan import StepPlan
from lab.core.request import Request
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.sim.cost_model import CostModel

ANY_TOKEN = 0  # a schedule depends on how many tokens there are, never on which


class VirtualClock:
    """Seconds since the start of the run; waiting takes no time."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, moment: float) -> None:
        self._now = max(self._now, moment)

    def advance(self, seconds: float) -> None:
        self._now += seconds


class SimulatedExecutor:
    """Stands behind the loop's `Executor` protocol: a step moves the clock by what it costs."""

    def __init__(self, cost: CostModel, clock: VirtualClock) -> None:
        self.cost = cost
        self.clock = clock

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> dict[str, int]:
        self.clock.advance(self.cost.seconds(plan, scheduler))
        return {r.request_id: ANY_TOKEN for r in scheduler.running if r.num_computed_tokens == r.num_tokens}


def simulate(
    requests: Iterable[Request] | Arrivals, scheduler: Scheduler, cost: CostModel, trace: Trace | None = None
) -> Trace:
    """Run `requests`, in order of arrival (seconds) or from an `Arrivals`, to their end.

    The scheduler is used up, as by any run. `trace` takes the place of one that keeps everything.
    """
    clock = VirtualClock()
    return Loop(scheduler, SimulatedExecutor(cost, clock), clock, trace).run(requests)
