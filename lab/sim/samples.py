"""Samples of a metric, and what is said of them: mean and nearest-rank percentiles."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lab.core.metrics import percentile

FEW = 100  # samples below which the nearest-rank p99 is the maximum


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


class Samples(Protocol):
    def add(self, values: Iterable[float]) -> None: ...

    def distribution(self) -> Distribution: ...


class AllSamples:
    """Keeps every sample: exact, in memory that grows."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, values: Iterable[float]) -> None:
        self.values.extend(values)

    def distribution(self) -> Distribution:
        if not self.values:
            return Distribution(0, *(5 * [math.nan]))
        ranked = sorted(self.values)
        percentiles = (percentile(ranked, q) for q in (50, 90, 95, 99))
        return Distribution(len(ranked), math.fsum(ranked) / len(ranked), *percentiles)


class Histogram:
    """Counts samples, which are not negative, in buckets of 0.1 %: memory that doesn't grow with them.

    Percentiles are the upper edge of their bucket, so up to 0.1 % above those of `AllSamples`; the mean is exact.
    """

    GROWTH = math.log(1.001)
    ZERO = -(10**9)  # the bucket of samples that are 0
    MAX_PENDING = 4096

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.total = 0.0
        self._pending: Counter[float] = Counter()  # many requests share a step, and so a gap: each is put away once

    def add(self, values: Iterable[float]) -> None:
        self._pending.update(values)
        if len(self._pending) > self.MAX_PENDING:
            self._put_away()

    def _put_away(self) -> None:
        for value, count in self._pending.items():
            self.counts[math.ceil(math.log(value) / self.GROWTH) if value else self.ZERO] += count
            self.total += value * count
        self._pending.clear()

    def distribution(self) -> Distribution:
        self._put_away()
        n = self.counts.total()
        if n == 0:
            return Distribution(0, *(5 * [math.nan]))
        return Distribution(n, self.total / n, *(self._percentile(q, n) for q in (50, 90, 95, 99)))

    def _percentile(self, q: int, n: int) -> float:
        rank = math.ceil(q / 100 * n)
        for bucket in sorted(self.counts):
            rank -= self.counts[bucket]
            if rank <= 0:
                return 0.0 if bucket == self.ZERO else math.exp(bucket * self.GROWTH)
        raise AssertionError("the counts sum up to n")
