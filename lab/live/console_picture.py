"""KV blocks over time, requests that run and wait, and what the head of the queue waits for."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.core.plan import WaitReason
from lab.core.trace import Trace
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
    """Values upwards from 0 to `most`."""

    most: float
    top: float
    right: float

    def y(self, value: float) -> float:
        return self.top + PANEL * (1 - value / self.most)

    def heights(self, values: Sequence[int]) -> list[float]:
        return [self.y(value) for value in values]


@dataclass(frozen=True)
class Columns:
    """The run in columns of a pixel: the most that any step in one of them had, 0 between steps."""

    blocks: list[int]
    running: list[int]
    waiting: list[int]
    preempting: list[int]


def in_columns(trace: Trace, count: int) -> Columns:
    steps, begin = trace.steps, trace.steps[0].start
    scale = (count - 1) / (steps[-1].end - begin)
    starts = [int((step.start - begin) * scale) for step in steps]
    ends = [int((step.end - begin) * scale) for step in steps]
    touching = [(bisect_left(ends, column), bisect_right(starts, column)) for column in range(count)]

    def most(values: list[int]) -> list[int]:
        return [max(values[i:j], default=0) for i, j in touching]

    return Columns(
        most([step.used_blocks for step in steps]),
        most([step.num_running for step in steps]),
        most([step.num_waiting for step in steps]),
        most([len(step.preempted) for step in steps]),
    )


def draw_console(
    trace: Trace, s: Summary, max_num_seqs: int, num_blocks: int, title: str, description: str, lang: Lang, width: int
) -> str:
    if not trace.steps:  # all requests were refused
        return draw.document(width, 30, title, description, [draw.text(LEFT, 20, description)])
    right, most = width - RIGHT, max(max_num_seqs, s.max_waiting)
    columns = in_columns(trace, right - LEFT + 1)
    blocks = Panel(1.1 * num_blocks, 24, right)
    requests = Panel(1.1 * most, blocks.top + PANEL + GAP, right)
    bottom, seconds = requests.top + PANEL, trace.steps[-1].end - trace.steps[0].start
    reasons, height = draw_reasons(s, lang, width, bottom + 56)
    parts = [
        *draw.time_axis(LEFT, right, requests.top, bottom, seconds, Both("秒", "seconds").of(lang)),
        *frame(blocks, BLOCKS.of(lang), num_blocks),
        draw.stairs(LEFT, blocks.heights(columns.blocks), draw.BLUE, stroke_width=1.5),
        *crosses(columns.preempting, blocks.top + 1),
        *frame(requests, REQUESTS.of(lang), most),
        draw.stairs(LEFT, requests.heights(columns.running), draw.BLUE, stroke_width=1.5),
        draw.stairs(LEFT, requests.heights(columns.waiting), draw.ORANGE, stroke_width=1.5, stroke_dasharray="4 2"),
        *reasons,
    ]
    return draw.document(width, height, title, description, parts)


def frame(panel: Panel, title: str, most: int) -> Iterator[str]:
    """The panel's title, its base, and a dashed line at `most`."""
    yield draw.text(LEFT, panel.top - 6, title)
    yield draw.line(LEFT, panel.y(0), panel.right, panel.y(0), draw.INK)
    yield draw.line(
        LEFT, panel.y(most), panel.right, panel.y(most), draw.INK, stroke_dasharray="6 4", stroke_opacity=0.6
    )
    yield from (draw.text(LEFT - 6, panel.y(value) + 4, str(value), anchor="end") for value in (0, most))


def crosses(preempting: Sequence[int], y: float) -> Iterator[str]:
    """One in each five pixels in which a step preempts."""
    for i in range(0, len(preempting), 5):
        if any(preempting[i : i + 5]):
            yield draw.cross(LEFT + i + 2, y, draw.ORANGE)


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
