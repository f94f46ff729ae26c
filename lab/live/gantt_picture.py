"""A row per request, its steps side by side, with the tokens of the plan in them."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.core.trace import Trace
from lab.live import draw
from lab.live.words import Both, Lang

LEFT, RIGHT, TOP = 30, 10, 34
LANE, BAR = 26, 18  # heights
ITEMS = (
    (draw.BLUE, Both("提示词（数字：这一步的词元）", "prompt (tokens in this step)")),
    (draw.ORANGE, Both("解码", "decode")),
    (draw.INK, Both("吐出一个词元", "a token comes out")),
    (draw.GRID, Both("在场，这一步没轮到", "there, and gets nothing")),
)


@dataclass(frozen=True)
class Gap:
    """The time between two tokens of one request, in seconds of the run."""

    request_id: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Axis:
    """From 0 to `end` seconds."""

    end: float
    width: int

    def x(self, seconds: float) -> float:
        return LEFT + min(seconds, self.end) / self.end * (self.width - LEFT - RIGHT)


def draw_gantt(trace: Trace, gap: Gap, end: float, title: str, description: str, lang: Lang, width: int) -> str:
    """All requests of the trace from 0 to `end` seconds, and the gap over them."""
    axis = Axis(end, width)
    lanes = {request_id: TOP + LANE * i for i, request_id in enumerate(trace.requests)}
    bottom = TOP + LANE * len(lanes)
    unit = Both("时间（ms，按规定的代价）", "time (ms, at the made-up cost)").of(lang)
    key, height = draw.legend([(color, word.of(lang)) for color, word in ITEMS], LEFT, width - RIGHT, bottom + 40)
    parts = [
        *draw.time_axis(LEFT, width - RIGHT, TOP, bottom, 1e3 * end, unit),
        *(part for name, y in lanes.items() for part in presence(trace, name, axis, y)),
        *bars(trace, axis, lanes),
        *(part for name, y in lanes.items() for part in tokens(trace, name, axis, y)),
        *arrow(gap, axis, lang),
        *key,
    ]
    return draw.document(width, height, title, description, parts)


def presence(trace: Trace, name: str, axis: Axis, y: float) -> Iterator[str]:
    """The request's name, and a band from its arrival to its end."""
    timeline = trace.requests[name]
    left = axis.x(timeline.arrival)
    right = axis.x(axis.end if timeline.finished is None else timeline.finished)
    yield draw.text(LEFT - 6, y + 17, name, anchor="end")
    yield draw.rect(left, y + LANE / 2 - 3, right - left, 6, draw.GRID)


def bars(trace: Trace, axis: Axis, lanes: dict[str, int]) -> Iterator[str]:
    fed = dict.fromkeys(lanes, 0)
    for step in trace.steps:
        if step.end > axis.end:
            return
        left, right = axis.x(step.start), axis.x(step.end)
        for name, n in step.num_tokens.items():
            is_prompt = fed[name] < trace.requests[name].num_prompt_tokens
            fed[name] += n
            y = lanes[name] + (LANE - BAR) / 2
            if is_prompt:
                yield draw.rect(left, y, right - left - 0.6, BAR, draw.BLUE)
                if right - left > draw.text_width(str(n)) + 2:
                    yield draw.text((left + right) / 2, y + 13, str(n), anchor="middle", fill=draw.ON_COLOR)
            else:
                yield draw.rect(left, y + 4, right - left - 0.6, BAR - 8, draw.ORANGE)


def tokens(trace: Trace, name: str, axis: Axis, y: float) -> Iterator[str]:
    """A mark where a token comes out."""
    for time in trace.requests[name].token_times:
        if time <= axis.end:
            yield draw.rect(axis.x(time) - 1.5, y + LANE / 2 - 4, 3, 8, draw.INK)


def arrow(gap: Gap, axis: Axis, lang: Lang) -> Iterator[str]:
    left, right = axis.x(gap.start), axis.x(gap.end)
    ms = f"{1e3 * gap.seconds:.2f} ms"
    label = Both(f"最长间隔 {ms}（{gap.request_id}）", f"longest gap {ms} ({gap.request_id})").of(lang)
    yield draw.line(left, TOP - 8, right, TOP - 8, draw.INK, stroke_width=2)
    yield from (draw.line(x, TOP - 13, x, TOP - 3, draw.INK, stroke_width=2) for x in (left, right))
    yield draw.text(min(left, axis.width - RIGHT - draw.text_width(label)), TOP - 18, label)
