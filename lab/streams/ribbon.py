"""The memory ribbon: pale, whose the bytes are for the allocator; solid, when the device really touches them.

A solid bar of one tensor below the pale band of another is memory handed out too early.
"""

from collections.abc import Iterator

from lab.streams import svg
from lab.streams.runtime import Tensor
from lab.streams.scale import LEFT, Scale
from lab.streams.trace import Span, Tenancy, Trace
from lab.streams.words import Lang

BAND, GAP = 20, 4
COLORS = (svg.BLUE, svg.ORANGE, svg.GREEN, svg.PINK, svg.YELLOW, svg.SKY)
TITLE: dict[Lang, str] = {"zh": "内存", "en": "memory"}


def ribbon(trace: Trace, scale: Scale, y: float, lang: Lang) -> tuple[list[str], float]:
    """A band for each stretch of bytes that the measured part touches, and where the bands end."""
    touched = [span for launched in trace.measured for span in launched.kernel.spans]
    tenants = [t for t in trace.tenancies if any(span.tensor is t.tensor for span in touched)]
    colors = {t.tensor: COLORS[i % len(COLORS)] for i, t in enumerate(tenants)}
    ranges = [(t.start, t.stop) for t in tenants] + [(span.start, span.stop) for span in touched]
    cuts = sorted({edge for both in ranges for edge in both})
    bands = [band for band in zip(cuts, cuts[1:]) if any(overlaps(t, band) for t in tenants)]
    parts = [svg.text(LEFT - 8, y + 14, TITLE[lang], anchor="end")] if bands else []
    for band in bands:
        for t in tenants:
            if overlaps(t, band):
                parts += owner(t, trace, scale, y, colors[t.tensor])
        parts += touches(trace, scale, band, y, colors)
        y += BAND + GAP
    return parts, y


def overlaps(bytes_: Tenancy | Span, band: tuple[int, int]) -> bool:
    return bytes_.start < band[1] and band[0] < bytes_.stop


def owner(t: Tenancy, trace: Trace, scale: Scale, y: float, color: str) -> list[str]:
    until = trace.through if t.until is None else t.until
    if until <= trace.begin.at or t.since >= trace.through:
        return []
    left, right = scale.x(t.since), scale.x(until)
    parts = [svg.rect(left, y, right - left, BAND, color, fill_opacity=0.2, title=t.tensor.name)]
    if svg.text_width(t.tensor.name) < right - left:
        parts.append(svg.text(left + 3, y + 10, t.tensor.name, font_size=10))
    return parts


def touches(trace: Trace, scale: Scale, band: tuple[int, int], y: float, colors: dict[Tensor, str]) -> Iterator[str]:
    for launched in trace.measured:
        start, end = launched.item.start, launched.item.end
        span = next((span for span in launched.kernel.spans if overlaps(span, band)), None)
        if span is not None and start is not None and end is not None:
            left, title = scale.x(start), f"{launched.kernel.label} ({launched.item.stream})"
            yield svg.rect(left, y + BAND - 8, scale.x(end) - left, 7, colors[span.tensor], title=title)
