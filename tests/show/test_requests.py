"""A line per request: what waits, what answers and what stalls are told apart, at the times of the trace."""

import pytest
from matplotlib.colors import to_rgba

from lab.core.trace import RequestTimeline, Trace
from lab.show.requests import ANSWERS, STALLS, WAITS, draw_requests


def drawn(axes, color):
    """The (y, start, end) of every line of a colour."""
    found = [c for c in axes.collections if tuple(c.get_colors()[0]) == to_rgba(color)]
    return [(y, start, end) for c in found for ((start, y), (end, _)) in c.get_segments()]


def test_waiting_answering_and_stalling_are_drawn_where_they_happened(axes):
    late = RequestTimeline(1.0, 8, token_times=[1.5, 1.6, 2.6, 2.7])
    early = RequestTimeline(0.0, 8, token_times=[0.25])
    never = RequestTimeline(0.5, 8)
    draw_requests(axes, Trace(requests={"late": late, "never": never, "early": early}), stall=0.5)
    assert drawn(axes, WAITS) == [(0, 0.0, 0.25), (1, 1.0, 1.5)]
    assert drawn(axes, ANSWERS) == [(0, 0.25, 0.25), (1, 1.5, 2.7)]
    ((y, start, end),) = drawn(axes, STALLS)
    assert (y, start) == (1, 1.6) and end == pytest.approx(2.6)
    top, bottom = axes.get_ylim()
    assert top > bottom, "the first to come is on top"
