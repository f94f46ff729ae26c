"""The figures of chapter 2: a load under the knobs. The numbers come from `lab.sim`."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from lab.core.trace import Trace
from lab.live.region_picture import VERDICTS
from lab.show.language import language
from lab.show.style import COLORS, tr
from lab.sim.stability import Judgement, Verdict
from lab.sim.summary import Summary

WALL = "0.35"
CELLS = {
    Verdict.STABLE: COLORS[2],
    Verdict.UNDER_USED: "0.85",
    Verdict.QUEUE_BOUND: COLORS[4],
    Verdict.THRASH: COLORS[1],
    Verdict.SLO_MISS: COLORS[5],
}


def draw_throughput(axes: Axes, knob: str, curves: Mapping[str, Mapping[int, Summary]]) -> None:
    """Output tokens per second against the values of a knob, on a log scale; a curve for each load."""
    _draw_knob(axes, knob, curves, lambda summary: summary.output_tokens_per_s)
    axes.set_title(tr(zh="吞吐（词元/s）", en="throughput (tokens/s)"))
    axes.set_ylim(bottom=0)


def draw_longest_gap(axes: Axes, knob: str, curves: Mapping[str, Mapping[int, Summary]]) -> None:
    """The longest time between two tokens of a request, in ms, both axes on log scales."""
    _draw_knob(axes, knob, curves, lambda summary: 1e3 * summary.longest_gap)
    axes.set_title(tr(zh="最长间隔（ms）", en="longest gap (ms)"))
    axes.set_yscale("log")


def _draw_knob(
    axes: Axes, knob: str, curves: Mapping[str, Mapping[int, Summary]], value: Callable[[Summary], float]
) -> None:
    for (name, runs), marker in zip(curves.items(), "os^D"):
        axes.plot(list(runs), [value(s) for s in runs.values()], marker=marker, markersize=4, label=name)
    ticks = sorted({x for runs in curves.values() for x in runs})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(knob)


def draw_blocks(axes: Axes, runs: Mapping[str, Trace], num_blocks: int) -> None:
    """KV blocks in use over time, the wall above them, and a cross where a step preempts."""
    for name, trace in runs.items():
        seconds = [step.start for step in trace.steps]
        (line,) = axes.plot(seconds, [step.used_blocks for step in trace.steps], linewidth=1.2, label=name)
        hit = [step for step in trace.steps if step.preempted]
        at = [step.start for step in hit], [step.used_blocks for step in hit]
        axes.plot(*at, "x", color=line.get_color(), markersize=5)
    axes.axhline(num_blocks, linestyle="--", color=WALL)
    axes.text(0, 1.03 * num_blocks, tr(zh="KV 容量的墙", en="the KV wall"), va="bottom", color=WALL, fontsize=9)
    axes.set(ylim=(0, 1.2 * num_blocks), xlabel=tr(zh="秒", en="seconds"))
    axes.set_title(tr(zh="在用的 KV 块（叉：抢占）", en="KV blocks in use (crosses: preemption)"))
    axes.legend(loc="lower center", ncols=len(runs))


def draw_tradeoff(axes: Axes, points: Mapping[str, Summary]) -> None:
    """A point for each policy: throughput to the right, the longest gap upwards, on a log scale."""
    groups: dict[tuple[float, float], list[str]] = {}
    for name, s in points.items():
        groups.setdefault((round(s.output_tokens_per_s, 1), round(1e3 * s.longest_gap, 1)), []).append(name)
    for (x, y), names in groups.items():
        axes.plot(x, y, "o", markersize=6)
        axes.annotate("\n".join(names), (x, y), (7, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yscale("log")
    axes.margins(0.15, 0.15)
    axes.set_xlim(right=axes.get_xlim()[1] * 1.03)
    axes.set_xlabel(tr(zh="吞吐（词元/s），越右越好", en="throughput (tokens/s): right is better"))
    axes.set_title(tr(zh="最长间隔（ms），越低越好", en="longest gap (ms): lower is better"))


def draw_utilisation(axes: Axes, runs: Mapping[float, Summary]) -> None:
    """p99 of the time in the queue and of the gaps between tokens, in ms, against rho."""
    rho = list(runs)
    axes.plot(rho, [1e3 * s.queue.p99 for s in runs.values()], "o-", markersize=4, label=tr(zh="排队", en="queue"))
    axes.plot(rho, [1e3 * s.itl.p99 for s in runs.values()], "s-", markersize=4, label=tr(zh="词元间隔", en="ITL"))
    axes.axvline(1, linestyle="--", color=WALL)
    axes.set(yscale="log", xlabel=r"$\rho$", title="p99 (ms)")
    axes.legend()


def draw_log(panels: Sequence[Axes], recorded: Sequence[Mapping[str, float]], trace: Trace, num_blocks: int) -> None:
    """Over time, as recorded (rows of second, waiting, running and kv_percent) and as the simulator retells it."""
    seconds = [step.start for step in trace.steps]
    simulated: dict[str, list[float]] = {
        "waiting": [step.num_waiting for step in trace.steps],
        "running": [step.num_running for step in trace.steps],
        "kv_percent": [100 * step.used_blocks / num_blocks for step in trace.steps],
    }
    titles = {
        "waiting": tr(zh="在排队的请求", en="requests waiting"),
        "running": tr(zh="在运行的请求", en="requests running"),
        "kv_percent": tr(zh="KV 使用率（%）", en="KV use (%)"),
    }
    for axes, (name, values) in zip(panels, simulated.items()):
        axes.plot(seconds, values, color=COLORS[4], linewidth=1, label=tr(zh="模拟", en="simulated"))
        rows = [row["second"] for row in recorded], [row[name] for row in recorded]
        axes.plot(*rows, "k.", markersize=4, label=tr(zh="实录", en="recorded"))
        axes.set(title=titles[name], ylim=(0, None))
    panels[0].legend()
    panels[-1].set_xlabel(tr(zh="秒", en="seconds"))


def draw_map(axes: Axes, verdicts: Mapping[tuple[int, int], Judgement]) -> None:
    """A cell for each (max_num_batched_tokens, max_num_seqs): what the setting comes to, in colour and in a word."""
    budgets, seqs = (sorted({point[i] for point in verdicts}) for i in (0, 1))
    for (budget, most), judgement in verdicts.items():
        x, y = budgets.index(budget), seqs.index(most)
        _, _, word = VERDICTS[judgement.verdict]
        axes.barh(y, 1, left=x - 0.5, height=1, color=CELLS[judgement.verdict], edgecolor="white", linewidth=1.5)
        axes.text(x, y, word.of(language()), ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(budgets)), [str(budget) for budget in budgets])
    axes.set_yticks(range(len(seqs)), [str(most) for most in seqs])
    axes.set(xlabel="max_num_batched_tokens", ylabel="max_num_seqs")
    axes.grid(visible=False)
