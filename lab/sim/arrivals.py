"""Where requests come from: clocks of their own, clients that wait, processes with a rate."""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from lab.core.config import require_at_least
from lab.core.errors import ConfigError
from lab.core.request import Request, SamplingParams

Shapes = Callable[[random.Random], tuple[int, int]]  # draws prompt tokens and output tokens


class ClosedLoop:
    """`concurrency` clients; each sends its next request `think_time` seconds after its last one is over.

    The load adapts to the server: a slow one gets fewer requests, so latency measured this way flatters it.
    """

    def __init__(self, requests: Iterable[Request], concurrency: int, think_time: float = 0.0) -> None:
        require_at_least("concurrency", concurrency, 1)
        self._requests = iter(requests)
        self._next = next(self._requests, None)
        self._ready = [0.0] * concurrency  # heap of the moments at which the idle clients send
        self.think_time = think_time

    def due(self, now: float) -> Iterator[Request]:
        while self._next is not None and self._ready and self._ready[0] <= now:
            self._next.arrival = heappop(self._ready)
            request, self._next = self._next, next(self._requests, None)
            yield request

    def next_arrival(self) -> float | None:
        return self._ready[0] if self._next is not None and self._ready else None

    def over(self, request_id: str, now: float) -> None:
        heappush(self._ready, now + self.think_time)


class ByStep:
    """Requests that arrive at the start of a numbered step, whatever the clock says: (step, request).

    Steps with nothing to do count, and take no time: they are skipped. `num_steps` is how many are over.
    """

    def __init__(self, requests: Iterable[tuple[float, Request]]) -> None:
        self._pending = [(step, order, request) for order, (step, request) in enumerate(requests)]
        heapify(self._pending)
        self.num_steps = -1

    def due(self, now: float) -> Iterator[Request]:
        self.num_steps += 1
        while self._pending and self._pending[0][0] <= self.num_steps:
            request = heappop(self._pending)[-1]
            request.arrival = now
            yield request

    def next_arrival(self) -> float | None:
        """0 is always past: the step of the next request comes at once."""
        if not self._pending:
            return None
        self.num_steps = max(self.num_steps, math.ceil(self._pending[0][0]) - 1)
        return 0.0

    def over(self, request_id: str, now: float) -> None:
        """Nobody waits for it."""


def gamma(num_requests: int, rate: float, shapes: Shapes, burstiness: float = 1.0, seed: int = 0) -> Iterator[Request]:
    """Requests `rate` a second, their gaps from a gamma distribution of shape `burstiness`.

    As in vLLM's `bench serve`: 1 is a Poisson process, below 1 the requests come in bursts, above 1 evenly; the gaps'
    standard deviation is their mean / sqrt(burstiness). Raises ConfigError unless both are above 0.
    """
    for name, value in (("rate", rate), ("burstiness", burstiness)):
        if not 0 < value < float("inf"):
            raise ConfigError(f"{name} is {value}; it must be a number above 0")
    return _gamma(num_requests, rate, shapes, burstiness, random.Random(seed))


def poisson(num_requests: int, rate: float, shapes: Shapes, seed: int = 0) -> Iterator[Request]:
    """Requests that come independently of one another, `rate` a second: `gamma` with burstiness 1."""
    return gamma(num_requests, rate, shapes, seed=seed)


def _gamma(n: int, rate: float, shapes: Shapes, burstiness: float, rng: random.Random) -> Iterator[Request]:
    arrival = 0.0
    for index in range(n):
        prompt, output = shapes(rng)
        yield Request(f"r{index}", range(prompt), SamplingParams(output), arrival=arrival)
        arrival += rng.gammavariate(burstiness, 1 / (rate * burstiness))


def fixed(prompt: int, output: int) -> Shapes:
    """Every request the same."""
    return lambda _: (prompt, output)
