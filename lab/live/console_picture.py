"""KV blocks over time, requests that run and wait, and what the head of the queue waits for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.core.plan import WaitReason
from lab.core.trace import StepRecord, Trace
from lab.live import draw
from lab.live.words import Both, Lang
from lab.sim.summary import Summary

LEFT, RIGHT, PANEL, GAP = 44, 10, 90, 34
REASONS = {
    WaitReason.MAX_SEQS: Both("并发上限", "max_num_seqs"),
    WaitReason.BUDGET: Both("词元预算", "token budget"),
    WaitReason.BLOCKS: Both("KV 块", "KV blocks"),
    WaitReason.POLICY: Both("策略", "policy"),
}
BLOCKS = Both("在用的 KV 块（叉：抢占）", "KV blocks in use (crosses: preemption)")
REQUESTS = Both("请求：实线在跑，虚线排队", "requests: line running, dashed waiting")
HEAD = Both("队首在等什么（步数）", "what the head of the queue waits for (steps)")


@dataclass(frozen=True)
class Panel:
    """Time to the right from `begin` for `span` seconds, values upwards from 0 to `most`."""

    begin: float
    span: float
    most: float
    top: float
    width: int

    def x(self, time: float) -> float:
        return LEFT + (time - self.begin) / self.span * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self.top + PANEL * (1 - value / self.most)


def draw_console(
    trace: Trace, s: Summary, max_num_seqs: int, num_blocks: int, title: str, description: str, lang: Lang, width: int
) -> str:
    if not trace.steps:  # all requests were refused
        return draw.document(width, 30, title, description, [draw.text(LEFT, 20, description)])
    begin, end = trace.steps[0].start, trace.steps[-1].end
    most = max(max_num_seqs, s.max_waiting)
    blocks = Panel(begin, end - begin, 1.1 * num_blocks, 24, width)
    requests = Panel(begin, end - begin, 1.1 * most, blocks.top + PANEL + GAP, width)
    bottom = requests.top + PANEL
    reasons, height = draw_reasons(s, lang, width, bottom + 56)
    parts = [
        *draw.time_axis(LEFT, width - RIGHT, requests.top, bottom, end - begin, Both("秒", "seconds").of(lang)),
        *frame(blocks, BLOCKS.of(lang), num_blocks),
        draw.path(outline(trace, blocks, lambda step: step.used_blocks), draw.BLUE, stroke_width=1.5),
        *crosses(trace, blocks),
        *frame(requests, REQUESTS.of(lang), most),
        draw.path(outline(trace, requests, lambda step: step.num_running), draw.BLUE, stroke_width=1.5),
        draw.path(outline(trace, requests, lambda step: step.num_waiting), draw.ORANGE, stroke_width=1.5,
                  stroke_dasharray="4 2"),
        *reasons,
    ]  # fmt: skip
    return draw.document(width, height, title, description, parts)


def frame(panel: Panel, title: str, most: int) -> Iterator[str]:
    """The panel's title, its base, and a dashed line at `most`."""
    right = panel.width - RIGHT
    yield draw.text(LEFT, panel.top - 6, title)
    yield draw.line(LEFT, panel.y(0), right, panel.y(0), draw.INK)
    yield draw.line(LEFT, panel.y(most), right, panel.y(most), draw.INK, stroke_dasharray="6 4", stroke_opacity=0.6)
    yield from (draw.text(LEFT - 6, panel.y(value) + 4, str(value), anchor="end") for value in (0, most))


def outline(trace: Trace, panel: Panel, value: Callable[[StepRecord], int]) -> list[tuple[float, float]]:
    """The largest value in each column of a pixel, drawn where it changes; 0 between steps."""
    columns = [0] * (panel.width - LEFT - RIGHT + 1)
    for step in trace.steps:
        first, last = int(panel.x(step.start)) - LEFT, int(panel.x(step.end)) - LEFT
        for column in range(first, last + 1):
            columns[column] = max(columns[column], value(step))
    points: list[tuple[float, float]] = []
    for column, most in enumerate(columns):
        y = panel.y(most)
        if not points or points[-1][1] != y:
            points += [(LEFT + column, points[-1][1])] if points else []
            points.append((LEFT + column, y))
    return [*points, (panel.width - RIGHT, points[-1][1])]


def crosses(trace: Trace, panel: Panel) -> Iterator[str]:
    """One in each column of five pixels in which a step preempts."""
    columns = sorted({int(panel.x(step.start)) // 5 for step in trace.steps if step.preempted})
    for x, y in ((5 * column + 2, panel.top + 1) for column in columns):
        yield draw.line(x - 2, y - 2, x + 2, y + 2, draw.ORANGE, stroke_width=1.5)
        yield draw.line(x - 2, y + 2, x + 2, y - 2, draw.ORANGE, stroke_width=1.5)


def draw_reasons(s: Summary, lang: Lang, width: int, y: float) -> tuple[list[str], float]:
    """A bar for each reason, and where they end."""
    parts = [draw.text(LEFT, y, HEAD.of(lang))]
    left = LEFT + max(draw.text_width(word.of(lang)) for word in REASONS.values()) + 8
    room, most = width - RIGHT - left - 44, max(1, *(s.waiting_reasons[reason] for reason in REASONS))
    for reason, word in REASONS.items():
        y += draw.ROW
        n = s.waiting_reasons[reason]
        if n:
            parts.append(draw.rect(left, y - 9, n / most * room, 11, draw.BLUE))
        parts.append(draw.text(left - 8, y, word.of(lang), anchor="end"))
        parts.append(draw.text(left + n / most * room + 6, y, f"{n:,}"))
    return parts, y + 10
