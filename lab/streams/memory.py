"""What stands in memory: a value for every byte address, held as runs of equal values.

So a tensor of any size costs no more than the number of different values in it, and a kernel really computes.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import Protocol

Extent = tuple[int, int]  # first byte, and one past the last
Runs = list[tuple[int, float]]  # (bytes, value), one after another

NEVER_WRITTEN = math.nan


class Contents(Protocol):
    """What programs do with the contents of memory."""

    def clear(self) -> None: ...
    def fill(self, to: Extent, value: float) -> None: ...
    def add(self, to: Extent, a: Extent, b: Extent | float) -> None: ...
    def copy(self, to: Extent, source: Extent) -> None: ...
    def load(self, source: Extent) -> Callable[[Extent], None]:
        """Take what stands there now; what is returned writes it elsewhere."""
        ...

    def mean(self, of: Extent) -> float: ...


class Memory:
    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.starts = [0]
        self.values = [NEVER_WRITTEN]

    def read(self, start: int, stop: int) -> Runs:
        i = bisect_right(self.starts, start) - 1
        runs = []
        while start < stop:
            end = min(stop, self.starts[i + 1]) if i + 1 < len(self.starts) else stop
            runs.append((end - start, self.values[i]))
            start, i = end, i + 1
        return runs

    def write(self, start: int, runs: Runs) -> None:
        stop = start + sum(length for length, _ in runs)
        starts, values = [], []
        at = start
        for length, value in runs:
            starts.append(at)
            values.append(value)
            at += length
        i, j = bisect_left(self.starts, start), bisect_left(self.starts, stop)
        if self.starts[j : j + 1] != [stop]:  # what stood behind goes on
            starts.append(stop)
            values.append(self.values[j - 1])
        self.starts[i:j], self.values[i:j] = starts, values

    def fill(self, to: Extent, value: float) -> None:
        self.write(to[0], [(to[1] - to[0], value)])

    def add(self, to: Extent, a: Extent, b: Extent | float) -> None:
        other = self.read(*b) if isinstance(b, tuple) else [(to[1] - to[0], b)]
        self.write(to[0], combine(lambda x, y: x + y, self.read(*a), other))

    def copy(self, to: Extent, source: Extent) -> None:
        self.write(to[0], self.read(*source))

    def load(self, source: Extent) -> Callable[[Extent], None]:
        return partial(self.store, self.read(*source))

    def store(self, runs: Runs, to: Extent) -> None:
        self.write(to[0], runs)

    def mean(self, of: Extent) -> float:
        return mean(self.read(*of))


def combine(function: Callable[[float, float], float], a: Runs, b: Runs) -> Runs:
    """`function` element by element on two lists of runs of one total length."""
    result: Runs = []
    a, b = a[::-1], b[::-1]
    while a:
        (a_length, x), (b_length, y) = a.pop(), b.pop()
        length = min(a_length, b_length)
        result.append((length, function(x, y)))
        for rest, left, value in ((a, a_length - length, x), (b, b_length - length, y)):
            if left:
                rest.append((left, value))
    return result


def mean(runs: Runs) -> float:
    return sum(length * value for length, value in runs) / sum(length for length, _ in runs)
