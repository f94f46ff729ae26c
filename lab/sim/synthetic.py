"""Loads with the statistics of published traces, for those who do not have the traces."""

import math
import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.core.request import Request
from lab.sim.arrivals import gamma


@dataclass(frozen=True)
class Quantiles:
    """Lengths by their percentiles: (percent, tokens), from 0 to 100; between two of them the logarithm is linear."""

    points: Sequence[tuple[float, float]]

    def draw(self, rng: random.Random) -> int:
        return round(self.at(100 * rng.random()))

    def at(self, percent: float) -> float:
        i = max(1, bisect_left(self.points, (percent, math.inf)))
        (p0, low), (p1, high) = self.points[i - 1], self.points[min(i, len(self.points) - 1)]
        return low if p0 == p1 else low * (high / low) ** ((percent - p0) / (p1 - p0))


@dataclass(frozen=True)
class SyntheticLoad:
    """Rate in requests per second, burstiness as in `gamma`, lengths in tokens, and where the figures come from.

    Prompt and output length of a request are drawn apart: in the traces they are hardly correlated.
    """

    rate: float
    burstiness: float
    prompt: Quantiles
    output: Quantiles
    source: str

    def requests(self, num_requests: int, seed: int = 0, rate: float | None = None) -> Iterator[Request]:
        """At the trace's own rate unless another is given."""

        def shapes(rng: random.Random) -> tuple[int, int]:
            return self.prompt.draw(rng), self.output.draw(rng)

        return gamma(num_requests, self.rate if rate is None else rate, shapes, self.burstiness, seed)


PERCENTS = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)


def _quantiles(*tokens: int) -> Quantiles:
    return Quantiles(tuple(zip(PERCENTS, tokens, strict=True)))


SYNTHETIC = {
    "azure-conv": SyntheticLoad(
        rate=5.53,
        burstiness=1 / 1.09**2,  # the gaps' standard deviation is 1.09 times their mean
        prompt=_quantiles(2, 29, 181, 207, 396, 1020, 1189, 2735, 4083, 4142, 6212, 14050),
        output=_quantiles(7, 16, 41, 54, 85, 129, 395, 424, 451, 601, 954, 1000),
        source="Azure LLM inference trace 2023, conversation (Azure Public Dataset, CC BY 4.0): 19,366 requests",
    ),
    "azure-code": SyntheticLoad(
        rate=2.57,
        burstiness=1 / 13.1**2,
        prompt=_quantiles(3, 17, 75, 147, 578, 1469, 2745, 5194, 7315, 7436, 7437, 7437),
        output=_quantiles(6, 6, 6, 7, 9, 13, 24, 55, 90, 252, 831, 1899),
        source="Azure LLM inference trace 2023, code (Azure Public Dataset, CC BY 4.0): 8,819 requests",
    ),
    "mooncake-conversation": SyntheticLoad(
        rate=3.40,
        burstiness=1.0,  # its time stamps are 3 s apart, so its gaps tell nothing
        prompt=Quantiles(((0, 1), (50, 6909), (95, 39550), (99, 85400), (100, 126195))),
        output=Quantiles(((0, 1), (50, 350), (95, 698), (99, 1119), (100, 2000))),
        source="Mooncake conversation trace (Apache-2.0): 12,031 requests",
    ),
}
