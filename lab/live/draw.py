"""Axes, keys and lines for the pictures, of the shapes and colours of lab.streams.svg."""

import math
from collections.abc import Sequence
from itertools import pairwise

from lab.streams import svg
from lab.streams.svg import BLUE, GRID, INK, ORANGE, document, line, rect, text, text_width

__all__ = ["BLUE", "GRID", "INK", "ORANGE", "document", "line", "rect", "text", "text_width"]

ON_COLOR = svg.PAPER  # letters on blue
ROW = 18  # height of a line of text


def stairs(left: int, heights: Sequence[float], stroke: str, **style: object) -> str:
    """A line with one height for each pixel from `left` on."""
    places = [f"M{left} {heights[0]:.1f}"]
    places += [f"H{x}V{y:.1f}" for x, (before, y) in enumerate(pairwise(heights), start=left + 1) if y != before]
    return (
        f'<path d="{"".join(places)}H{left + len(heights) - 1}" fill="none" stroke="{stroke}"{svg.attributes(style)}/>'
    )


def cross(x: float, y: float, stroke: str) -> str:
    return f'<path d="M{x - 2} {y - 2}l4 4m0-4l-4 4" fill="none" stroke="{stroke}" stroke-width="1.5"/>'


def ticks(span: float, most: int) -> list[float]:
    """At most `most` + 1 round numbers from 0 to `span`, which is above 0; two at least if `most` is 3 or more."""
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= most)
    return [i * step for i in range(math.floor(span / step) + 1)]


def time_axis(left: float, right: float, top: float, y: float, span: float, unit: str) -> list[str]:
    """A line at `y` with ticks from 0 to `span`, and a grid up to `top`."""
    parts = []
    for tick in ticks(span, max(3, int((right - left) / 70))):
        x = left + tick / span * (right - left)
        parts += [line(x, top, x, y, GRID), text(x, y + 15, f"{tick:g}", anchor="middle")]
    return [*parts, line(left, y, right, y, INK), text(right, y + 15 + ROW, unit, anchor="end")]


def legend(items: Sequence[tuple[str, str]], left: float, right: float, y: float) -> tuple[list[str], float]:
    """A square and a word for each (colour, word), in as many lines as it takes; and where the lines end."""
    parts, x = [], left
    for color, word in items:
        width = 16 + text_width(word) + 14
        if x > left and x + width - 14 > right:
            x, y = left, y + ROW
        parts += [rect(x, y + 3, 10, 10, color), text(x + 16, y + 12, word)]
        x += width
    return parts, y + ROW
