"""The figures of chapter 2 draw what the simulator says: values, the wall, preemptions, verdicts in both languages."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgba

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.live.region_picture import VERDICTS
from lab.show.load import (
    CELLS,
    draw_blocks,
    draw_log,
    draw_longest_gap,
    draw_map,
    draw_throughput,
    draw_tradeoff,
    draw_utilisation,
)
from lab.sim import LinearCost, simulate
from lab.sim.stability import Judgement, Miss, Verdict
from lab.sim.tally import summarize


def crowded(max_num_seqs):
    """Six requests of 16 + 33 tokens, 3 blocks each at the end, on 8 blocks: two fit, three do not."""
    scheduler = Scheduler(SchedulerConfig(64, max_num_seqs), CacheConfig(8))
    return simulate([Request(str(i), range(16), SamplingParams(33)) for i in range(6)], scheduler, LinearCost())


def values(line):
    return list(zip(line.get_xdata(), line.get_ydata()))


def test_the_knob_is_drawn_against_throughput_and_gap(axes):
    runs = {n: summarize(crowded(n), 8) for n in (1, 2, 4)}
    draw_throughput(axes, "max_num_seqs", {"load": runs})
    assert values(axes.lines[0]) == [(n, s.output_tokens_per_s) for n, s in runs.items()]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    draw_longest_gap(axes, "max_num_seqs", {"load": runs})
    assert values(axes.lines[1]) == [(n, 1e3 * s.longest_gap) for n, s in runs.items()]


def test_blocks_run_into_the_wall_with_a_cross_for_each_step_that_preempts(axes):
    calm, full = crowded(2), crowded(4)
    draw_blocks(axes, {"2": calm, "4": full}, num_blocks=8)
    blocks_calm, crosses_calm, blocks_full, crosses_full, wall = axes.lines
    assert max(blocks_calm.get_ydata()) < max(blocks_full.get_ydata()) == wall.get_ydata()[0] == 8
    assert values(blocks_full) == [(step.start, step.used_blocks) for step in full.steps]
    assert values(crosses_calm) == []
    assert [x for x, _ in values(crosses_full)] == [step.start for step in full.steps if step.preempted] != []


def test_policies_with_one_result_share_a_point(axes):
    calm, full = summarize(crowded(2), 8), summarize(crowded(4), 8)
    draw_tradeoff(axes, {"a": calm, "b": full, "c": calm})
    assert [text.get_text() for text in axes.texts] == ["a\nc", "b"]
    assert values(axes.lines[1]) == [(round(full.output_tokens_per_s, 1), round(1e3 * full.longest_gap, 1))]


def test_queue_and_gaps_against_rho(axes):
    summary = summarize(crowded(2), 8)
    draw_utilisation(axes, {0.5: summary, 1.5: summary})
    queue, itl, one = axes.lines
    assert values(queue) == [(rho, 1e3 * summary.queue.p99) for rho in (0.5, 1.5)]
    assert values(itl)[0] == (0.5, 1e3 * summary.itl.p99) and one.get_xdata()[0] == 1


def test_the_log_stands_beside_the_run_in_the_same_units():
    figure, panels = plt.subplots(3)
    trace = crowded(2)
    rows = [{"second": 0.1, "waiting": 4, "running": 2, "kv_percent": 50.0}]
    draw_log(panels, rows, trace, num_blocks=8)
    for axes, column, value in zip(panels, ("waiting", "running", "kv_percent"), (4, 2, 100 * 4 / 8)):
        simulated, recorded = axes.lines
        assert values(recorded) == [(0.1, rows[0][column])]
        assert simulated.get_ydata()[10] == value, column
    plt.close(figure)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_cell_has_the_verdicts_colour_and_word(axes, monkeypatch, lang):
    monkeypatch.setenv("BOOK_LANG", lang)
    kinds = [Verdict.STABLE, *(kind for kind in Verdict if kind is not Verdict.STABLE)]
    points = [(512, 8), (512, 16), (2048, 8), (2048, 16), (4096, 8)]
    judged = {
        point: Judgement(() if kind is Verdict.STABLE else (Miss(kind, "", 2, 1),))
        for point, kind in zip(points, kinds)
    }
    draw_map(axes, judged)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["512", "2048", "4096"]
    for bar, text, kind, (_, seqs) in zip(axes.patches, axes.texts, kinds, points):
        _, _, word = VERDICTS[kind]
        assert bar.get_facecolor() == to_rgba(CELLS[kind]) and text.get_text() == word.of(lang)
        assert text.get_position()[1] == (8, 16).index(seqs)
    assert len(axes.patches) == len(Verdict) == len(set(CELLS.values()))
