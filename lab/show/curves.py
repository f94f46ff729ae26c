"""The curves of chapter 1: units, axes and labels; the numbers come from `lab.measure`."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from lab.measure.chunk_cost import ChunkCost, CostFit
from lab.measure.roofline import Ceilings, RooflineRow
from lab.show.style import COLORS, tr


def draw_by_position(axes: Axes, curves: Mapping[str, Sequence[float]], chunk_size: int) -> None:
    """Differences at the positions of a prompt, on a log scale, where those that are 0 do not appear.

    Grey lines stand where a chunk begins.
    """
    for label, values in curves.items():
        axes.plot(range(len(values)), values, ".", markersize=3, label=label)
    positions = max(map(len, curves.values()))
    axes.set_yscale("log")
    for start in range(chunk_size, positions, chunk_size):
        axes.axvline(start, color="0.7", linewidth=0.8, zorder=0)
    axes.set_xlabel(tr(zh="位置（竖线：新的一块）", en="position (lines: a new chunk)"))
    axes.set_title(tr(zh="logits 与整段之差", en="difference of the logits from the whole pass"))
    axes.grid(visible=False, axis="x")
    axes.set_ylim(top=20)
    axes.legend(loc="upper left", ncols=len(curves), markerscale=3, columnspacing=1, handletextpad=0.2)


def draw_bytes(axes: Axes, xs: Sequence[int], curves: Mapping[str, Sequence[int]], xlabel: str) -> None:
    """Bytes, drawn in MiB, against token counts, both on log scales; each curve has its name at its end."""
    for label, nbytes in curves.items():
        mib = [n / 2**20 for n in nbytes]
        (line,) = axes.plot(xs, mib, "o-", markersize=4)
        end, above = (xs[-1], mib[-1]), (-4, 5)
        axes.annotate(label, end, above, textcoords="offset points", ha="right", color=line.get_color(), fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(xs, [str(x) for x in xs])
    axes.minorticks_off()
    axes.set(xlabel=xlabel, title="MiB")


def draw_roofline(axes: Axes, rows: Sequence[RooflineRow], limits: Ceilings) -> None:
    """GFLOP/s against tokens per step; the dashed lines are what the device allows to steps of prefill."""
    kinds = {"prefill": tr(zh="预填充", en="prefill"), "decode": tr(zh="解码", en="decode")}
    for kind, label in kinds.items():
        of_kind = [row for row in rows if row.kind == kind]
        rates = [row.flops_per_s / 1e9 for row in of_kind]
        axes.plot([row.tokens for row in of_kind], rates, "o-", label=label)
    prefill = [row for row in rows if row.kind == "prefill"]
    tokens = [row.tokens for row in prefill]
    memory = [row.work.intensity * limits.bytes_per_s / 1e9 for row in prefill]
    axes.plot(tokens, memory, "--", color="0.5", label=tr(zh="内存带宽的上限", en="ceiling: memory"))
    best = limits.flops_per_s / 1e9
    axes.axhline(best, linestyle=":", color="0.5", label=tr(zh="计算的上限", en="ceiling: arithmetic"))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(tokens, [str(n) for n in tokens])
    axes.set_ylim(top=4 * best)
    axes.set_xlabel(tr(zh="每步词元数", en="tokens per step"))
    axes.set_title("GFLOP/s")
    axes.legend(loc="lower right")


def draw_cost(axes: Axes, rows: Sequence[ChunkCost], fit: CostFit) -> None:
    """Milliseconds of a prompt at each chunk size: measured, and the fitted shares of the causes as stacked bars."""
    names = {
        "tokens": tr(zh="词元的计算", en="tokens"),
        "pairs": tr(zh="注意力的计算", en="attention"),
        "kv": tr(zh="重读 KV", en="KV read"),
        "steps": tr(zh="每步固定", en="steps"),
    }
    labels, bottom = [str(row.chunk_size) for row in rows], [0.0] * len(rows)
    for color, (term, name) in zip(COLORS, names.items()):
        parts = [fit.shares(row)[term] * fit.milliseconds(row) for row in rows]
        axes.bar(labels, parts, bottom=bottom, color=color, label=name)
        bottom = [low + part for low, part in zip(bottom, parts)]
    axes.plot(labels, [row.timing.median for row in rows], "ko", markersize=4, label=tr(zh="实测", en="measured"))
    axes.set(title=tr(zh="全程（ms）", en="whole prompt (ms)"), xlabel="C")
    axes.legend(loc="upper right")
