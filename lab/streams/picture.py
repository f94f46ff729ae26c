"""The lanes of a run: what ran when on which stream, whose memory it touched, and what nothing orders.

Several runs stand one above the other on one axis, so that a broken program and its mended twin can be compared.
"""

from collections.abc import Sequence

from lab.streams import svg
from lab.streams.lanes import DEFS, Lanes
from lab.streams.ribbon import ribbon
from lab.streams.scale import LEFT, RIGHT, WIDTH, Scale
from lab.streams.trace import Trace
from lab.streams.words import Lang, kinds_of

TIME: dict[Lang, str] = {"zh": "时间（微秒，模型机器）", "en": "time (microseconds of the model machine)"}
LABEL: dict[Lang, str] = {
    "zh": "各条流上的操作、事件和内存归属",
    "en": "operations, events and memory, stream by stream",
}


def draw(panels: Sequence[tuple[str, Trace]], lang: Lang = "en", width: int = WIDTH, description: str = "") -> str:
    """An SVG of one or more finished runs of the model, each with its title and the kinds of its hazards."""
    span = max(trace.through - trace.begin.at for _, trace in panels)
    parts: list[str] = []
    y = 8.0
    for title, trace in panels:
        scale = Scale(trace.begin.at, max(float(span), 1.0), width)
        parts.append(svg.text(LEFT, y + 14, title, font_weight="bold"))
        if kinds := kinds_of(trace.hazards, lang):
            parts.append(svg.text(width - RIGHT, y + 14, kinds, anchor="end", fill=svg.RED, font_weight="bold"))
        lanes = Lanes(trace, scale, y + 22, lang)
        memory, y = ribbon(trace, scale, lanes.bottom + 6, lang)
        parts += [*lanes.draw(), *memory]
        y += 14
    for tick in scale.ticks():
        x = LEFT + tick * scale.per_us
        parts.insert(0, svg.line(x, 8, x, y, svg.GRID))
        parts.append(svg.text(x, y + 14, str(tick), anchor="middle"))
    parts.append(svg.text(width - RIGHT, y + 32, TIME[lang], anchor="end"))
    return svg.document(width, y + 40, LABEL[lang], description, parts, DEFS)
