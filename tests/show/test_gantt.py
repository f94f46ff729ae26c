"""The plan of every step in the picture: who got tokens, who was there and got none, and the longest gap."""

import pytest
from matplotlib.colors import to_rgba

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.metrics import longest_gap
from lab.policies import PrefillFirst
from lab.show.gantt import DECODE, PROMPT, draw_gantt, mark_longest_gap
from lab.sim import LinearCost, simulate


def trace(policy):
    """A decodes; P arrives in the second step with 100 tokens; chunks of 50. A step takes 10 ms + 0.1 ms a token."""
    scheduler = policy(SchedulerConfig(50, 4), CacheConfig(100))
    requests = [Request("A", range(1), SamplingParams(6)), Request("P", range(100), SamplingParams(1), arrival=0.015)]
    return simulate(requests, scheduler, LinearCost(step_ms=10, token_ms=0.1))


def bars(axes, row, color):
    """(start, end) of the bars of one colour in a row, in ms."""
    inside = [p for p in axes.patches if p.get_y() < row < p.get_y() + p.get_height()]
    spans = [(p.get_x(), p.get_x() + p.get_width()) for p in inside if p.get_facecolor() == to_rgba(color)]
    return [(round(start, 6), round(end, 6)) for start, end in spans]


def test_prompts_and_decodes_stand_where_the_plan_has_them(axes):
    draw_gantt(axes, trace(PrefillFirst), ["A", "P"], end_ms=200)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "P"]
    assert bars(axes, 2, PROMPT) == [(0, 10.1)]
    assert bars(axes, 1, PROMPT) == [(20.2, 35.2), (35.2, 50.2)]
    assert bars(axes, 2, DECODE)[:2] == [(10.1, 20.2), (50.2, 60.3)], "A waits for both chunks"
    assert bars(axes, 1, DECODE) == []
    assert [text.get_text() for text in axes.texts if text.get_position()[1] == 1] == ["50", "50"]


def test_mixed_steps_show_in_both_rows(axes):
    draw_gantt(axes, trace(Scheduler), ["A", "P"], end_ms=200)
    assert [text.get_text() for text in axes.texts if text.get_position()[1] == 1] == ["49", "49", "2"]
    assert set(bars(axes, 1, PROMPT)) <= set(bars(axes, 2, DECODE))


def test_a_dot_for_every_token_and_none_beyond_the_end(axes):
    run = trace(Scheduler)
    draw_gantt(axes, run, ["A"], end_ms=40)
    (dots,) = (line for line in axes.lines if line.get_marker() == "o")
    assert list(dots.get_xdata()) == [1000 * t for t in run.requests["A"].token_times if t <= 0.040]
    assert all(end <= 40 for _, end in bars(axes, 1, PROMPT) + bars(axes, 1, DECODE))


@pytest.mark.parametrize(("lang", "word"), [("zh", "最长间隔"), ("en", "longest gap")])
def test_the_longest_gap_is_the_metrics_one(axes, monkeypatch, lang, word):
    monkeypatch.setenv("BOOK_LANG", lang)
    run = trace(PrefillFirst)
    draw_gantt(axes, run, ["A", "P"], end_ms=200)
    mark_longest_gap(axes, run, "A")
    assert axes.texts[-1].get_text() == f"{word} {1000 * longest_gap(run):.2f} ms" == f"{word} 40.10 ms"
    assert axes.get_ylim()[1] > axes.texts[-1].get_position()[1] > 2.5, "above all rows and inside the picture"
