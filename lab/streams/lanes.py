"""A lane for the host and one for each stream, with events and hazards across them."""

from dataclasses import dataclass
from fractions import Fraction

from lab.streams import svg
from lab.streams.races import Op
from lab.streams.runtime import HOST
from lab.streams.scale import LEFT, RIGHT, Scale
from lab.streams.svg import GRID, INK, RED
from lab.streams.trace import Trace
from lab.streams.words import Lang

BOX, ROW = 22, 15  # heights of an operation and of a line of labels
MAX_ROWS = 3
BLOCKED, HAZARD = "url(#blocked)", "url(#hazard)"
HOST_NAME: dict[Lang, str] = {"zh": "主机", "en": "host"}

DEFS = (
    '<marker id="arrow" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,1 L7,4 L0,7 z" fill="currentColor"/></marker>'
    '<pattern id="blocked" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="6" height="6" fill="{GRID}"/><rect width="2" height="6" fill="#8a8a8a"/></pattern>'
    '<pattern id="hazard" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    f'<rect width="2.5" height="7" fill="{RED}"/></pattern>'
)


@dataclass(frozen=True)
class Mark:
    """Something with a beginning and an end in a lane."""

    label: str
    start: Fraction
    end: Fraction
    fill: str
    op: Op | None


@dataclass(frozen=True)
class Box:
    """Where an operation was drawn."""

    left: float
    right: float
    middle: float


class Lanes:
    def __init__(self, trace: Trace, scale: Scale, top: float, lang: Lang) -> None:
        self.trace, self.scale = trace, scale
        self.dangerous = {op for hazard in trace.hazards for op in (hazard.first, hazard.second)}
        self.boxes: dict[Op, Box] = {}
        self.tops: dict[str, float] = {}
        self.shapes: list[str] = []
        self.labels: list[str] = []
        self.bottom = top
        self.add_lane(HOST, HOST_NAME[lang], host_marks(trace))
        for stream in dict.fromkeys(x.item.stream for x in trace.measured):
            self.add_lane(stream, stream, stream_marks(trace, stream))

    def draw(self) -> list[str]:
        return [*self.shapes, *self.edges(), *self.hazards(), *self.labels]

    def add_lane(self, lane: str, name: str, marks: list[Mark]) -> None:
        wanted = [(self.scale.x(mark.start), mark.label) for mark in marks if mark.label]
        labels = place_labels(wanted, self.scale.width - RIGHT)
        y = self.bottom + 4 + ROW * (1 + max((row for _, row, _ in labels), default=-1))
        self.tops[lane] = y
        self.shapes.append(svg.line(LEFT, y + BOX, self.scale.width - RIGHT, y + BOX, GRID))
        self.labels.append(svg.text(LEFT - 8, y + 15, name, anchor="end"))
        self.labels += [svg.label(x, y - 4 - ROW * row, label) for x, row, label in labels]
        for mark in marks:
            left, right = self.scale.x(mark.start), self.scale.x(mark.end)
            width = max(right - left, 1)
            self.shapes.append(
                svg.rect(left, y, width, BOX, mark.fill, title=mark.label, stroke=INK, stroke_opacity=0.7)
            )
            if mark.op is not None:
                self.boxes[mark.op] = Box(left, left + width, y + BOX / 2)
                if mark.op in self.dangerous:
                    self.shapes.append(svg.rect(left, y, max(width, 3), BOX, HAZARD, stroke=RED))
        self.bottom = y + BOX + 6

    def edges(self) -> list[str]:
        """An arrow from each record to each wait for it on another stream."""
        parts = []
        for record, wait in self.trace.edges:
            shown = record.stream in self.tops and wait.stream in self.tops and record.issued >= self.scale.begin
            if shown and record.stream != wait.stream and record.end is not None and wait.end is not None:
                y1, y2 = self.tops[record.stream], self.tops[wait.stream]
                y1, y2 = (y1 + BOX, y2) if y1 < y2 else (y1, y2 + BOX)
                x1, x2 = self.scale.x(record.end), self.scale.x(wait.end)
                parts.append(svg.line(x1, y1, x2, y2, INK, stroke_width=1.4, marker_end="url(#arrow)"))
        return parts

    def hazards(self) -> list[str]:
        """A dashed line between the two operations, where they are nearest."""
        parts = []
        for hazard in self.trace.hazards:
            if hazard.first in self.boxes and hazard.second in self.boxes:
                a, b = self.boxes[hazard.first], self.boxes[hazard.second]
                x1 = min(max((b.left + b.right) / 2, a.left), a.right)
                x2 = min(max(x1, b.left), b.right)
                dashes = svg.line(x1, a.middle, x2, b.middle, RED, stroke_width=2.4, stroke_dasharray="5 3")
                parts.append(dashes)
        return parts


def host_marks(trace: Trace) -> list[Mark]:
    """What the host did; named where it touched memory, since launches are named where they run."""
    return [
        Mark(span.label if span.op else "", span.start, span.end, BLOCKED if span.is_blocked else GRID, span.op)
        for span in trace.measured_host
    ]


def stream_marks(trace: Trace, stream: str) -> list[Mark]:
    marks = []
    for launched in trace.measured:
        item, kernel = launched.item, launched.kernel
        if item.stream == stream and item.start is not None and item.end is not None:
            fill = svg.PALE_BLUE if kernel.engine == "kernels" else svg.PALE_ORANGE
            marks.append(Mark(kernel.label, item.start, item.end, fill, launched.op))
    return marks


def place_labels(wanted: list[tuple[float, str]], right: float) -> list[tuple[float, int, str]]:
    """(x, row, label), up to `right`: each in the lowest row in which it runs into no other, or left out."""
    ends: list[float] = []
    placed = []
    for x, label in wanted:
        width = svg.text_width(label)
        x = min(x, right - width)
        row = next((i for i, end in enumerate(ends) if end + 6 <= x), len(ends))
        if row < MAX_ROWS:
            ends[row : row + 1] = [x + width]
            placed.append((x, row, label))
    return placed
