"""The memory ribbon: pale, whose the bytes are for the allocator; solid, when the device really touches them.

A solid bar of one tensor below the pale band of another is memory handed out too early.
"""

from collections.abc import Callable
from fractions import Fraction

from lab.streams import svg
from lab.streams.runtime import Tensor
from lab.streams.trace import Tenancy, Trace
from lab.streams.words import Lang

BAND, GAP = 20, 4
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
TITLE: dict[Lang, str] = {"zh": "内存", "en": "memory"}


def ribbon(trace: Trace, x: Callable[[Fraction], float], y: float, left: float, lang: Lang) -> tuple[list[str], float]:
    """Bands for the bytes that the measured part touches; returns where they end."""
    touched = [span for launched in trace.measured for span in launched.kernel.spans]
    shown = [t for t in trace.tenancies if any(s.tensor is t.tensor for s in touched)]
    cuts = sorted({edge for t in shown for edge in (t.start, t.stop)} | {e for s in touched for e in (s.start, s.stop)})
    bands = [(a, b) for a, b in zip(cuts, cuts[1:]) if any(t.start <= a and b <= t.stop for t in shown)]
    tops = {band: y + i * (BAND + GAP) for i, band in enumerate(bands)}
    colors = {t.tensor: COLORS[i % len(COLORS)] for i, t in enumerate(shown)}
    parts = [svg.text(left - 8, y + 14, TITLE[lang], anchor="end")] if bands else []
    for (start, stop), top in tops.items():
        for t in shown:
            if t.start < stop and start < t.stop:
                parts += owner(t, trace, x, top, colors[t.tensor])
        parts += touches(trace, x, (start, stop), top, colors)
    return parts, y + len(bands) * (BAND + GAP)


def owner(t: Tenancy, trace: Trace, x: Callable[[Fraction], float], top: float, color: str) -> list[str]:
    since = max(t.since, trace.begin.at) - trace.begin.at
    until = (trace.through if t.until is None else min(t.until, trace.through)) - trace.begin.at
    if until <= since:
        return []
    left, right = x(since), x(until)
    pale = svg.rect(left, top, right - left, BAND, color, fill_opacity=0.18, title=t.tensor.name)
    fits = svg.text_width(t.tensor.name) < right - left
    return [pale, svg.text(left + 3, top + 10, t.tensor.name, font_size=10)] if fits else [pale]


def touches(
    trace: Trace, x: Callable[[Fraction], float], band: tuple[int, int], top: float, colors: dict[Tensor, str]
) -> list[str]:
    parts = []
    for launched in trace.measured:
        start, end = launched.item.start, launched.item.end
        spans = [s for s in launched.kernel.spans if s.start < band[1] and band[0] < s.stop]
        if spans and start is not None and end is not None:
            left, right = x(start - trace.begin.at), x(end - trace.begin.at)
            title = f"{launched.kernel.label} ({launched.item.stream})"
            color = colors[spans[0].tensor]
            parts.append(svg.rect(left, top + BAND - 8, right - left, 7, color, title=title))
    return parts
