"""The one step loop: a scheduler, an executor that computes its plans, and a clock.

The engine puts a model behind `Executor`, a simulation a cost model; what is scheduled is the same.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from lab.core.arrivals import Arrivals, OpenLoop
from lab.core.errors import NoProgress, RequestRejected
from lab.core.plan import StepPlan
from lab.core.request import FinishReason, Request
from lab.core.scheduler import Scheduler
from lab.core.trace import StepRecord, Trace


class Executor(Protocol):
    def execute(self, plan: StepPlan, scheduler: Scheduler) -> Mapping[str, int]:
        """Compute the plan, whose tokens the scheduler already counts as computed.

        Returns the next token of each planned request that has no uncomputed token left.
        """
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since some fixed moment."""
        ...

    def wait_until(self, moment: float) -> None:
        """Return when `now() >= moment`."""
        ...


class WallClock:
    """Real time, from 0 at the making of the clock."""

    def __init__(self) -> None:
        self._zero = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self._zero

    def wait_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - self.now()))


class Loop:
    """Steps a scheduler and an executor, and keeps the trace."""

    def __init__(
        self, scheduler: Scheduler, executor: Executor, clock: Clock | None = None, trace: Trace | None = None
    ) -> None:
        self.scheduler = scheduler
        self.executor = executor
        self.clock = clock or WallClock()
        self.trace = trace if trace is not None else Trace()

    def submit(self, request: Request) -> None:
        """Queue a request; its queueing time counts from `request.arrival`, in seconds of the clock."""
        self.scheduler.submit(request)
        self.trace.record_submit(request)

    def abort(self, request_id: str) -> bool:
        """End a request now; False if it is unknown or already over."""
        aborted = self.scheduler.abort(request_id)
        if aborted:
            self.trace.record_finish(request_id, self.clock.now(), FinishReason.ABORT)
        return aborted

    def step(self) -> StepRecord:
        """One step. Raises `NoProgress`, with every request still in its place, if nothing could be planned."""
        scheduler, start = self.scheduler, self.clock.now()
        plan = scheduler.schedule()
        running, waiting, used = len(scheduler.running), len(scheduler.waiting), scheduler.pool.num_used
        if not plan.num_tokens and waiting and not running:
            raise NoProgress(self._why_no_progress())
        try:
            sampled = self.executor.execute(plan, scheduler) if plan.num_tokens else {}
        except BaseException:  # out of memory, or the user's Ctrl-C: no request is harmed, the step can be tried again
            scheduler.retract(plan)
            raise
        end = self.clock.now()
        finished = scheduler.update(plan, sampled)
        record = StepRecord(
            start,
            end,
            plan.num_tokens,
            plan.preempted,
            tuple([request.request_id for request in finished]),
            scheduler.pool.num_free,
            used,
            running,
            waiting,
            scheduler.head_waits_for,
        )
        self.trace.record_step(record, sampled)
        for request in finished:
            assert request.finish_reason is not None
            self.trace.record_finish(request.request_id, end, request.finish_reason)
        return record

    def run(self, requests: Iterable[Request] | Arrivals = ()) -> Trace:
        """Submit each request at its arrival and step until all are over.

        `requests` come in order of arrival, or from an `Arrivals`. One that is refused is in the trace as such, and the
        rest goes on.
        """
        arrivals = requests if isinstance(requests, Arrivals) else OpenLoop(requests)
        while True:
            self._submit_due(arrivals)
            if self.scheduler.has_unfinished:
                record = self.step()
                for request_id in record.finished:
                    arrivals.over(request_id, record.end)
            elif (moment := arrivals.next_arrival()) is not None:
                self.clock.wait_until(moment)
            else:
                return self.trace

    def _submit_due(self, arrivals: Arrivals) -> None:
        now = self.clock.now()
        for request in arrivals.due(now):
            try:
                self.submit(request)
            except RequestRejected as error:
                self.trace.record_refused(request, str(error))
                arrivals.over(request.request_id, now)

    def _why_no_progress(self) -> str:
        head = self.scheduler.waiting.head
        reason = self.scheduler.waiting_reasons()[head.request_id]
        return (
            f"nothing can be planned: {len(self.scheduler.waiting)} waiting, none running, and request "
            f"{head.request_id!r} at the head ({head.num_tokens} tokens, {self.scheduler.pool.num_free} free blocks) "
            f"waits for {reason.value}; abort it or enlarge what it waits for"
        )
