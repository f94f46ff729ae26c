"""A simulation that ends in time for somebody who waits for it."""

from collections.abc import Iterable

from lab.core.loop import Loop
from lab.core.plan import StepPlan
from lab.core.request import Request
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.sim import CostModel, SimulatedExecutor, VirtualClock


class _Enough(Exception):
    """As many steps as were allowed."""


class _Limited(SimulatedExecutor):
    def __init__(self, cost: CostModel, clock: VirtualClock, max_steps: int) -> None:
        super().__init__(cost, clock)
        self.left = max_steps

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> dict[str, int]:
        if self.left == 0:
            raise _Enough
        self.left -= 1
        return super().execute(plan, scheduler)


def simulate_up_to(
    max_steps: int, requests: Iterable[Request], scheduler: Scheduler, cost: CostModel
) -> tuple[Trace, bool]:
    """`lab.sim.simulate`, ended after `max_steps` steps; whether it had to be.

    A trace that was cut holds the requests that had come by then, some of them unfinished.
    """
    clock, trace = VirtualClock(), Trace()
    try:
        Loop(scheduler, _Limited(cost, clock, max_steps), clock, trace).run(requests)
    except _Enough:
        return trace, True
    return trace, False
