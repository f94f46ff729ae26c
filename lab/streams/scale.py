"""Where a moment stands on the picture's axis."""

from dataclasses import dataclass
from fractions import Fraction

WIDTH, LEFT, RIGHT = 480, 58, 12


@dataclass(frozen=True)
class Scale:
    """The axis goes from `begin` for `span` microseconds; what lies outside stands at its ends."""

    begin: Fraction
    span: float
    width: int = WIDTH  # of the whole picture

    @property
    def per_us(self) -> float:
        return (self.width - LEFT - RIGHT) / self.span

    def x(self, at: Fraction) -> float:
        return LEFT + min(max(float(at - self.begin), 0.0), self.span) * self.per_us

    def ticks(self) -> list[int]:
        """Round numbers of microseconds, at most ten in the usual width."""
        step = next(s for e in range(12) for s in (10**e, 2 * 10**e, 5 * 10**e) if self.span / s <= self.width // 50)
        return list(range(0, int(self.span) + 1, step))
