"""Draw the README's picture, docs/steps.svg, from two runs of the scheduler: `python -m tools.draw_picture`."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.loop import Loop
from lab.core.plan import StepPlan
from lab.core.request import Request, SamplingParams
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.show.style import COLORS, use_style
from tools.settings import ROOT

PROMPT_TOKENS = 512


class TokenClock:
    """Time is the number of tokens computed: no cost model stands between the picture and the plan."""

    def __init__(self) -> None:
        self.tokens = 0.0

    def now(self) -> float:
        return self.tokens

    def wait_until(self, moment: float) -> None:
        self.tokens = max(self.tokens, moment)


class Counting:
    """An executor that computes nothing: it moves the clock and gives every request that is due some token."""

    def __init__(self, clock: TokenClock) -> None:
        self.clock = clock

    def execute(self, plan: StepPlan, scheduler: Scheduler) -> Mapping[str, int]:
        self.clock.tokens += sum(plan.num_tokens.values())
        due = [request for request in scheduler.running if request.num_computed_tokens == request.num_tokens]
        return {request.request_id: 0 for request in due if request.request_id in plan.num_tokens}


def simulate(max_num_batched_tokens: int) -> Trace:
    """Two requests are decoding when a long prompt arrives."""
    config = SchedulerConfig(max_num_batched_tokens=max_num_batched_tokens, max_num_seqs=4)
    clock = TokenClock()
    loop = Loop(Scheduler(config, CacheConfig(num_blocks=256)), Counting(clock), clock)
    long = SamplingParams(max_tokens=8)
    short = SamplingParams(max_tokens=60)
    return loop.run(
        [
            Request("A", range(4), short),
            Request("B", range(4), short),
            Request("C", range(PROMPT_TOKENS), long, arrival=48.0),
        ]
    )


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
    draw(above, simulate(2048), "C in one step: A and B get no token until it is done    整段预填充：A、B 全程停摆")
    draw(below, simulate(64), "C under a budget of 64 a step: A and B go on    每步预算 64：A、B 照常出词元")
    below.set_xlabel("tokens computed so far, dots are tokens coming out    已计算的词元数，圆点是吐出的词元")
    figure.savefig(ROOT / "docs/steps.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
