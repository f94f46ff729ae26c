"""Draw the README's picture, docs/steps.svg, from two runs of the scheduler: `python -m tools.draw_picture`."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig, Trace
from lab.show.style import COLORS, use_style
from lab.sim import LinearCost, simulate
from tools.settings import ROOT

PROMPT_TOKENS = 512


def run(max_num_batched_tokens: int) -> Trace:
    """Two requests are decoding when a long prompt arrives. Time is the number of tokens computed, and nothing else."""
    config = SchedulerConfig(max_num_batched_tokens=max_num_batched_tokens, max_num_seqs=4)
    short = SamplingParams(max_tokens=60)
    requests = [
        Request("A", range(4), short),
        Request("B", range(4), short),
        Request("C", range(PROMPT_TOKENS), SamplingParams(max_tokens=8), arrival=48.0),
    ]
    scheduler = Scheduler(config, CacheConfig(num_blocks=256))
    return simulate(requests, scheduler, LinearCost(step_ms=0, token_ms=1000))


def draw(axes: Axes, trace: Trace, title: str) -> None:
    for row, name in enumerate("CBA"):
        color = COLORS["ABC".index(name)]
        for step in trace.steps:
            if name in step.num_tokens and step.num_tokens[name] > 4:
                axes.barh(row, step.end - step.start, left=step.start, color=color, edgecolor="white", height=0.6)
        times = trace.requests[name].token_times
        axes.plot(times, [row] * len(times), "o", color=color, markersize=4, markeredgecolor="white")
    times = trace.requests["A"].token_times
    gap, end = max((after - before, after) for before, after in zip(times, times[1:], strict=False))
    axes.annotate("", (end, 2.5), (end - gap, 2.5), arrowprops={"arrowstyle": "<->", "color": "0.3"})
    axes.text(end - gap / 2, 2.6, f"{gap:.0f}", ha="center", va="bottom", color="0.3")
    axes.set_yticks(range(3), ["C", "B", "A"])
    axes.set_title(title, loc="left", fontsize=11)
    axes.set(xlim=(0, 690), ylim=(-0.6, 3.3))
    axes.grid(visible=False)


def main() -> None:
    use_style()
    plt.rcParams.update({"svg.hashsalt": "steps", "svg.fonttype": "path"})
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True)
    draw(above, run(2048), "C in one step: A and B get no token until it is done    整段预填充：A、B 全程停摆")
    draw(below, run(64), "C under a budget of 64 a step: A and B go on    每步预算 64：A、B 照常出词元")
    below.set_xlabel("tokens computed so far, dots are tokens coming out    已计算的词元数，圆点是吐出的词元")
    figure.savefig(ROOT / "docs/steps.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
