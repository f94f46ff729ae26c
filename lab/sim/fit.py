"""A `Roofline` fitted to measured times, by least squares."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.core.errors import ConfigError
from lab.sim.cost_model import Roofline


@dataclass(frozen=True)
class Measured:
    """The time of one step or of many in a row, and what was in them."""

    seconds: float
    steps: float
    tokens: float
    context: float


def fit(measured: Iterable[Measured]) -> Roofline:
    """The roofline with the least sum of squared relative errors: what takes long counts no more than what doesn't.

    Raises ConfigError if the steps are too alike to tell the three times apart.
    """
    rows = [[x / m.seconds for x in (m.steps, m.tokens, m.context)] for m in measured]
    scale = [max((abs(row[i]) for row in rows), default=0.0) or 1.0 for i in range(3)]
    rows = [[x / s for x, s in zip(row, scale)] for row in rows]
    normal = [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)]
    times = solve(normal, [sum(row[i] for row in rows) for i in range(3)])
    return Roofline(*(time / s for time, s in zip(times, scale)))


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """x with `matrix` x = `right`, by Gauss-Jordan elimination with pivots. Raises ConfigError if there is no one x."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        if abs(rows[pivot][i]) < 1e-12 * len(rows):
            raise ConfigError(
                "the measured steps are too alike to fit a time per step, per token and per context; "
                "measure steps of different sizes"
            )
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] for row in rows]
