"""The lanes of a run: what ran when on which stream, whose memory it touched, and what nothing orders.

Several runs stand one above the other on one axis, so that a broken program and its mended twin can be compared.
"""

from collections.abc import Sequence
from fractions import Fraction

from lab.streams import svg
from lab.streams.races import Op
from lab.streams.ribbon import ribbon
from lab.streams.runtime import HOST
from lab.streams.trace import Launched, Trace
from lab.streams.words import NAMES, Lang

WIDTH, LEFT, RIGHT = 860, 96, 16
BOX, ROW = 22, 15  # heights of an operation and of a line of labels
KERNEL, COPY, HOST_BUSY, BLOCKED, RED = "#8fc8ec", "#f2c572", "#c9c9c9", "url(#blocked)", "#c0392b"

WORDS: dict[str, dict[Lang, str]] = {
    HOST: {"zh": "主机", "en": "host"},
    "time": {"zh": "时间（微秒，模型机器）", "en": "time (microseconds of the model machine)"},
    "picture": {"zh": "各条流上的操作、事件和内存归属", "en": "operations, events and memory, stream by stream"},
}

DEFS = (
    f'<marker id="arrow" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    f'<path d="M0,1 L7,4 L0,7 z" fill="#222"/></marker>'
    f'<pattern id="blocked" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="6" height="6" fill="#eee"/><rect width="2" height="6" fill="#999"/></pattern>'
    f'<pattern id="hazard" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    f'<rect width="2.5" height="7" fill="{RED}"/></pattern>'
)


class Scale:
    """Microseconds since the beginning of the measured part, as x."""

    def __init__(self, span: Fraction) -> None:
        self.span = max(float(span), 1.0)

    def x(self, at: Fraction | float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(float(at), 0.0), self.span) / self.span

    def ticks(self) -> list[int]:
        step = next(s for e in range(9) for s in (10**e, 2 * 10**e, 5 * 10**e) if self.span / s <= 9)
        return list(range(0, int(self.span) + 1, step))


def draw(panels: Sequence[tuple[str, Trace]], lang: Lang = "en") -> str:
    """An SVG of one or more finished runs of the model, each with its title."""
    scale = Scale(max(trace.through - trace.begin.at for _, trace in panels))
    parts: list[str] = []
    y = 8.0
    for title, trace in panels:
        parts.append(svg.text(LEFT, y + 14, title, font_weight="bold"))
        lanes, y = draw_lanes(trace, scale, y + 22, lang)
        memory, y = ribbon(trace, scale.x, y + 6, LEFT, lang)
        parts += lanes + memory
        y += 14
    for tick in scale.ticks():
        parts.insert(0, svg.line(scale.x(tick), 8, scale.x(tick), y, "#e4e4e4"))
        parts.append(svg.text(scale.x(tick), y + 14, str(tick), anchor="middle", fill="#555"))
    parts.append(svg.text(WIDTH - RIGHT, y + 32, WORDS["time"][lang], anchor="end", fill="#555"))
    return svg.document(WIDTH, y + 40, WORDS["picture"][lang], DEFS, parts)


def draw_lanes(trace: Trace, scale: Scale, y: float, lang: Lang) -> tuple[list[str], float]:
    """The host's lane and one for each stream, then events and hazards across them; returns where they end."""
    streams = list(dict.fromkeys(x.item.stream for x in trace.measured))
    in_hazard = {op for hazard in trace.hazards for op in (hazard.first, hazard.second)}
    boxes: dict[Op, tuple[float, float, float]] = {}  # left, right, top
    tops: dict[str, float] = {}
    parts: list[str] = []
    for lane in [HOST, *streams]:
        marks = host_marks(trace) if lane == HOST else stream_marks(trace, lane)
        labels = place_labels([(scale.x(start), label) for label, start, _, _, _ in marks if label])
        y += ROW * (1 + max((row for _, row, _ in labels), default=-1)) + 4
        tops[lane] = y
        parts.append(svg.text(LEFT - 8, y + 15, WORDS[HOST][lang] if lane == HOST else lane, anchor="end"))
        parts.append(svg.line(LEFT, y + BOX, WIDTH - RIGHT, y + BOX, "#bbb"))
        parts += [svg.text(x, y - 4 - ROW * row, label) for x, row, label in labels]
        for label, start, end, fill, op in marks:
            left, right = scale.x(start), scale.x(end)
            parts.append(svg.rect(left, y, right - left, BOX, fill, title=label, stroke="#555", stroke_width=0.6))
            if op is not None:
                boxes[op] = (left, max(right, left + 1), y)
                if op in in_hazard:
                    parts.append(svg.rect(left, y, max(right - left, 3), BOX, "url(#hazard)", stroke=RED))
        y += BOX + 6
    return parts + draw_edges(trace, scale, tops) + draw_hazards(trace, boxes, lang), y


Mark = tuple[str, Fraction, Fraction, str, Op | None]  # label (or none), from, to, fill, operation


def host_marks(trace: Trace) -> list[Mark]:
    zero = trace.begin.at
    marks: list[Mark] = []
    for span in trace.measured_host:
        label = span.label if span.op is not None else ""
        marks.append((label, span.start - zero, span.end - zero, BLOCKED if span.is_blocked else HOST_BUSY, span.op))
    return marks


def stream_marks(trace: Trace, stream: str) -> list[Mark]:
    zero = trace.begin.at
    mine = [x for x in trace.measured if x.item.stream == stream]
    return [
        (x.kernel.label, x.item.start - zero, x.item.end - zero, fill_of(x), x.op)
        for x in mine
        if x.item.start is not None and x.item.end is not None
    ]


def fill_of(launched: Launched) -> str:
    return KERNEL if launched.kernel.engine == "kernels" else COPY


def place_labels(wanted: list[tuple[float, str]]) -> list[tuple[float, int, str]]:
    """(x, row, label): each label in the lowest row in which it runs into no other."""
    ends: list[float] = []
    placed = []
    for x, label in wanted:
        width = svg.text_width(label)
        x = min(x, WIDTH - RIGHT - width)
        row = next((i for i, end in enumerate(ends) if end + 6 <= x), len(ends))
        ends[row : row + 1] = [x + width]
        placed.append((x, row, label))
    return placed


def draw_edges(trace: Trace, scale: Scale, tops: dict[str, float]) -> list[str]:
    """An arrow from each record to each wait for it on another stream."""
    parts = []
    for record, wait in trace.edges:
        shown = record.stream in tops and wait.stream in tops and record.issued >= trace.begin.at
        if shown and record.stream != wait.stream and record.end is not None and wait.end is not None:
            down = tops[wait.stream] > tops[record.stream]
            y1, y2 = tops[record.stream] + (BOX if down else 0), tops[wait.stream] + (0 if down else BOX)
            x1, x2 = (scale.x(at - trace.begin.at) for at in (record.end, wait.end))
            parts.append(svg.line(x1, y1, x2, y2, "#222", stroke_width=1.4, marker_end="url(#arrow)"))
    return parts


def draw_hazards(trace: Trace, boxes: dict[Op, tuple[float, float, float]], lang: Lang) -> list[str]:
    parts = []
    for hazard in trace.hazards:
        if hazard.first in boxes and hazard.second in boxes:
            (left, right, y1), (left2, right2, y2) = boxes[hazard.first], boxes[hazard.second]
            x1, x2 = (left + right) / 2, (left2 + right2) / 2
            parts.append(svg.line(x1, y1 + BOX / 2, x2, y2 + BOX / 2, RED, stroke_width=1.8, stroke_dasharray="5 3"))
            middle = ((x1 + x2) / 2, (y1 + y2) / 2 + BOX)
            parts.append(svg.text(middle[0] + 6, middle[1], NAMES[hazard.kind][lang], fill=RED, font_weight="bold"))
    return parts
