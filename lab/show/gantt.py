"""A run as a picture: a row per request, its steps side by side, the tokens of the plan written into them."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from lab.core.metrics import gaps
from lab.core.trace import Trace
from lab.show.style import COLORS, tr

PROMPT, DECODE, IDLE = COLORS[0], COLORS[1], "0.85"
WIDTH_OF_A_DIGIT = 0.014  # of the axes: below it a step's number of tokens would not fit into its bar


def draw_gantt(axes: Axes, trace: Trace, rows: Sequence[str], end_ms: float) -> None:
    """The requests `rows`, the first on top, from 0 to `end_ms`, in milliseconds of the run's clock.

    Blue is prompt, orange one token fed back, a dot a token that comes out; grey is a request that is there and gets
    nothing in the step.
    """
    height = {request_id: len(rows) - i for i, request_id in enumerate(rows)}
    for request_id, y in height.items():
        timeline = trace.requests[request_id]
        end = end_ms if timeline.finished is None else min(end_ms, 1000 * timeline.finished)
        axes.hlines(y, 1000 * timeline.arrival, end, color=IDLE, linewidth=5, zorder=1)
        times = [1000 * time for time in timeline.token_times if 1000 * time <= end_ms]
        axes.plot(times, [y] * len(times), "o", color="black", markersize=3.5, markeredgecolor="white", zorder=4)
    fed = dict.fromkeys(rows, 0)
    for step in trace.steps:
        left, width = 1000 * step.start, 1000 * (step.end - step.start)
        for request_id, n in step.num_tokens.items():
            if request_id not in height or left + width > end_ms:
                continue
            is_prompt = fed[request_id] < trace.requests[request_id].num_prompt_tokens
            fed[request_id] += n
            y = height[request_id]
            color = PROMPT if is_prompt else DECODE
            axes.barh(y, width, left=left, height=0.6, color=color, edgecolor="white", linewidth=0.8, zorder=2)
            if is_prompt and width > len(str(n)) * WIDTH_OF_A_DIGIT * end_ms:
                axes.text(left + width / 2, y, str(n), ha="center", va="center", color="white", fontsize=9, zorder=5)
    axes.set_yticks(list(height.values()), list(height))
    axes.set(xlim=(0, end_ms), ylim=(0.5, len(rows) + 0.5))
    axes.grid(visible=False)


def mark_longest_gap(axes: Axes, trace: Trace, request_id: str) -> None:
    """An arrow above all rows, over the longest time between two tokens of a request, with its length."""
    times = trace.requests[request_id].token_times
    all_gaps = gaps(times)
    index = max(range(len(all_gaps)), key=all_gaps.__getitem__)
    start, end = 1000 * times[index], 1000 * times[index + 1]
    bottom, y = axes.get_ylim()
    axes.set_ylim(bottom, y + 0.65)
    arrow = {"arrowstyle": "<->", "color": "0.2", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, y), (start, y), arrowprops=arrow)
    label = tr(zh=f"最长间隔 {end - start:.2f} ms", en=f"longest gap {end - start:.2f} ms")
    axes.text(start, y + 0.1, label, ha="left", va="bottom", color="0.2", fontsize=9)
