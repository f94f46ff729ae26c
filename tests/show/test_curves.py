"""What the curves draw is what they were given, in the units that stand on the axes."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from lab.measure.chunk_cost import ChunkCost, CostFit
from lab.measure.roofline import Ceilings, RooflineRow
from lab.measure.timing import Timing
from lab.measure.work import Work
from lab.show.curves import draw_by_position, draw_bytes, draw_cost, draw_roofline
from lab.show.style import use_style


@pytest.fixture
def axes():
    with matplotlib.rc_context():
        use_style()
        figure, axes = plt.subplots()
        yield axes
        figure.canvas.draw()
        plt.close(figure)


def test_positions_and_the_edges_of_chunks(axes):
    draw_by_position(axes, {"rounding": [0.0, 1e-6, 2e-6, 1e-6, 1e-6], "bug": [0.0, 0.0, 1.0, 1.0, 1.0]}, chunk_size=2)
    rounding, bug, *edges = axes.lines
    assert list(bug.get_ydata()) == [0, 0, 1, 1, 1] and axes.get_yscale() == "log"
    assert [edge.get_xdata()[0] for edge in edges] == [2, 4]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["rounding", "bug"]


def test_bytes_become_mib(axes):
    draw_bytes(axes, [64, 128], {"KV": [2**20, 3 * 2**20]}, "C")
    assert list(axes.lines[0].get_ydata()) == [1, 3] and axes.get_title(loc="left") == "MiB"
    assert [text.get_text() for text in axes.texts] == ["KV"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["64", "128"]


def row(kind: str, tokens: int, ms: float) -> RooflineRow:
    work = Work(tokens, 1_000_000_000 * tokens, 0, 0, 500_000_000, 0, 0)
    return RooflineRow(kind, 128, work, Timing((ms,)))


def test_roofline_in_gflops(axes):
    rows = [row("prefill", 1, 100.0), row("prefill", 64, 320.0), row("decode", 1, 200.0)]
    draw_roofline(axes, rows, Ceilings(flops_per_s=400e9, bytes_per_s=10e9))
    prefill, decode, memory, arithmetic = axes.lines
    assert list(prefill.get_ydata()) == [10, 200] and list(decode.get_ydata()) == [5]
    assert list(memory.get_ydata()) == [20, 1280], "operations per byte times bytes per second"
    assert list(arithmetic.get_ydata()) == [400, 400]


@pytest.mark.parametrize(("lang", "steps"), [("zh", "每步固定"), ("en", "steps")])
def test_the_causes_add_up_to_the_fit(axes, monkeypatch, lang, steps):
    monkeypatch.setenv("BOOK_LANG", lang)
    rows = [
        ChunkCost(32, 4, 128, 8256, 320, 0, 0, 0, None, Timing((12.0,))),
        ChunkCost(128, 1, 128, 8256, 128, 0, 0, 0, None, Timing((9.0,))),
    ]
    fit = CostFit((1.0, 0.05, 0.0, 0.01), error=0.0)
    draw_cost(axes, rows, fit)
    tops = [max(bar.get_y() + bar.get_height() for bar in bars) for bars in zip(*axes.containers)]
    assert tops == pytest.approx([fit.milliseconds(row) for row in rows])
    assert tops == pytest.approx([13.6, 8.68])
    assert [bar.get_height() for bar in axes.containers[-1]] == pytest.approx([4.0, 1.0])
    assert axes.containers[-1].get_label() == steps
    assert list(axes.lines[0].get_ydata()) == [12.0, 9.0]
