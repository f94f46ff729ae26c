"""The requests that wait for admission, in the order in which they will be admitted."""

from bisect import insort
from collections import deque
from collections.abc import Iterator

from lab.core.request import Request


def priority_key(request: Request) -> tuple[int, float, str]:
    """The lowest goes first; ids break ties, as in vLLM 0.33.0."""
    return request.priority, request.arrival, request.request_id


class FcfsQueue:
    """First come, first served. A preempted request came before all that wait, so it goes to the head."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    @property
    def head(self) -> Request:
        return self._requests[0]

    def push(self, request: Request) -> None:
        self._requests.append(request)

    def push_preempted(self, request: Request) -> None:
        self._requests.appendleft(request)

    def pop(self) -> Request:
        return self._requests.popleft()

    def remove(self, request: Request) -> None:
        self._requests.remove(request)

    @staticmethod
    def victim(running: list[Request]) -> Request:
        """Whom to preempt: the newest, which has lost the least."""
        return running[-1]


class PriorityQueue(FcfsQueue):
    """The lowest (priority, arrival) first; a preempted request goes back to the place that its key gives it."""

    def push(self, request: Request) -> None:
        insort(self._requests, request, key=priority_key)

    push_preempted = push

    @staticmethod
    def victim(running: list[Request]) -> Request:
        """Whom to preempt: the least important, and of those the latest; of equals, as in vLLM 0.33.0, the first in
        `running`. Two equals may then preempt each other by turns without an end, so let no two arrive at one moment.
        """
        return max(running, key=lambda r: (r.priority, r.arrival))


QUEUES: dict[str, type[FcfsQueue]] = {"fcfs": FcfsQueue, "priority": PriorityQueue}
