"""A whole load at a glance: a line per request, from its arrival to its last token."""

from matplotlib.axes import Axes

from lab.core.metrics import gaps
from lab.core.trace import Trace
from lab.show.style import COLORS, tr

WAITS, ANSWERS, STALLS = "0.8", COLORS[0], COLORS[1]


def draw_requests(axes: Axes, trace: Trace, stall: float) -> None:
    """Grey until the first token, blue while tokens come, orange where the next one takes longer than `stall` seconds.

    In order of arrival, the first on top; requests that got no token are left out.
    """
    served = sorted((r for r in trace.requests.values() if r.token_times), key=lambda r: r.arrival)
    for y, request in enumerate(served):
        times = request.token_times
        axes.hlines(y, request.arrival, times[0], color=WAITS, linewidth=2)
        axes.hlines(y, times[0], times[-1], color=ANSWERS, linewidth=2)
        for start, gap in zip(times, gaps(times)):
            if gap > stall:
                axes.hlines(y, start, start + gap, color=STALLS, linewidth=2)
    axes.set(ylim=(len(served), -1), ylabel=tr(zh="请求", en="requests"), xlabel=tr(zh="秒", en="seconds"))
    axes.set_yticks([])
    axes.grid(visible=False)
