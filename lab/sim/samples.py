"""Samples of a metric, and what is said of them: mean and nearest-rank percentiles."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import chain, repeat

FEW = 100  # samples below which the nearest-rank p99 is the maximum
PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True)
class Distribution:
    """Mean and nearest-rank percentiles of `n` samples, in the samples' unit; NaN if there are none."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @property
    def p99_is_max(self) -> bool:
        """Too few samples for a p99: the true one lies above their maximum with probability 0.99 ** n."""
        return self.n < FEW


class Samples:
    """Every sample, as values and how often each came: exact, in 12 bytes a value.

    Requests that share a step share its gap, so the gaps of a run are about as many values as it has steps.
    """

    MAX_PENDING = 4096

    def __init__(self) -> None:
        self._pending: Counter[float] = Counter()
        self._runs: list[tuple[array[float], array[int]]] = []  # values in order, and their counts

    def add(self, values: Iterable[float]) -> None:
        self._pending.update(values)
        if len(self._pending) > self.MAX_PENDING:
            self._put_away()

    def _put_away(self) -> None:
        values = array("d", sorted(self._pending))
        self._runs.append((values, array("I", map(self._pending.__getitem__, values))))
        self._pending.clear()

    def distribution(self) -> Distribution:
        self._put_away()
        n = sum(sum(counts) for _, counts in self._runs)
        if n == 0:
            return Distribution(0, *(5 * [math.nan]))
        return Distribution(n, self._sum() / n, *self._ranked(math.ceil(q / 100 * n) for q in PERCENTS))

    def _sum(self) -> float:
        return math.fsum(chain.from_iterable(chain.from_iterable(map(repeat, *run) for run in self._runs)))

    def _ranked(self, ranks: Iterable[int]) -> Iterator[float]:
        """The samples at these ranks, which ascend; the smallest is number 1."""
        ordered = merge(*(zip(*run) for run in self._runs))
        seen, value = 0, math.nan
        for rank in ranks:
            while seen < rank:
                value, count = next(ordered)
                seen += count
            yield value
