"""The shortest prompt first: the best mean wait, and no end of waiting for a long one unless it grows older."""

from bisect import insort

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.plan import PlanDraft, WaitReason
from lab.core.request import Request
from lab.core.scheduler import Scheduler
from lab.core.waiting_queue import FcfsQueue


class ShortestQueue(FcfsQueue):
    """By known tokens; but who joined first goes first once others went before it in `max_skip` turns."""

    def __init__(self, max_skip: float) -> None:
        super().__init__()
        self.max_skip = max_skip
        self.turn = 0
        self._joined: dict[str, float] = {}  # the turn, by request, the first to come first

    @property
    def head(self) -> Request:
        oldest = next(iter(self._joined))
        if self.turn - self._joined[oldest] < self.max_skip:
            return self._requests[0]
        return next(r for r in self._requests if r.request_id == oldest)

    def push(self, request: Request) -> None:
        self._insert(request)
        self._joined[request.request_id] = self.turn

    def push_preempted(self, request: Request) -> None:
        """It has had its turn before all that wait, so it is the oldest."""
        self._insert(request)
        self._joined = {request.request_id: -self.max_skip, **self._joined}

    def _insert(self, request: Request) -> None:
        insort(self._requests, request, key=lambda r: (r.num_tokens, r.arrival))

    def pop(self) -> Request:
        request = self.head
        self.remove(request)
        return request

    def remove(self, request: Request) -> None:
        super().remove(request)
        del self._joined[request.request_id]


class ShortestFirst(Scheduler):
    """A turn is a step that admits somebody. `max_skip` infinite is shortest-first pure: a long request may starve."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig, max_skip: float = 50) -> None:
        super().__init__(config, cache)
        self.waiting: ShortestQueue = ShortestQueue(max_skip)

    def _admit_waiting(self, step: PlanDraft) -> WaitReason | None:
        before = len(self.running)
        reason = super()._admit_waiting(step)
        self.waiting.turn += len(self.running) > before
        return reason
