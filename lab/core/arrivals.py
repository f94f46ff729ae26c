"""When requests come: what feeds a run of the loop."""

import math
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from lab.core.request import Request


@runtime_checkable
class Arrivals(Protocol):
    """Asked once before each step. Times are in seconds of the loop's clock."""

    def due(self, now: float) -> Iterator[Request]:
        """Hand over what has arrived by `now`."""
        ...

    def next_arrival(self) -> float | None:
        """When to ask again if nothing is left to do; None if nothing more will come."""
        ...

    def over(self, request_id: str, now: float) -> None:
        """A request has ended or was refused: a client that waited for it may send its next one."""
        ...


class OpenLoop:
    """Each request at its `arrival`, whatever became of those before it. `requests` come in order of arrival.

    One whose arrival is no finite number is handed over in its turn, and refused.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests = iter(requests)
        self._next = next(self._requests, None)

    def due(self, now: float) -> Iterator[Request]:
        while self._next is not None and not now < self._next.arrival < math.inf:
            yield self._next
            self._next = next(self._requests, None)

    def next_arrival(self) -> float | None:
        return None if self._next is None else self._next.arrival

    def over(self, request_id: str, now: float) -> None:
        """Nobody waits for it."""
