"""The map of the stable region: lab.sim's own verdicts, and a wall that holds on one side and breaks on the other."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.core import CacheConfig, SchedulerConfig
from lab.live import region
from lab.live.figure import plain
from lab.live.region_picture import VERDICTS
from lab.live.region_words import CRITERIA, explain, notes_of
from lab.live.registry import answer
from lab.sim.load import Load
from lab.sim.samples import Distribution
from lab.sim.stability import Criteria, Verdict, judge
from lab.sim.summary import SLO
from lab.sim.trial import Setting, Trial, judge_all, run_trial
from tests.live.settings import any_settings

DEFAULTS = {knob.name: knob.default for knob in region.KNOBS}
RATES, BLOCKS = (next(knob.marks for knob in region.KNOBS if knob.name == name) for name in ("rate", "blocks"))


def reply(lang="en", **setting) -> dict:
    return json.loads(answer("region", json.dumps(setting), lang, 680))


def trials(blocks: int, rate: float) -> dict:
    """Every cell run by itself."""
    load = Load.of(region.LOAD.requests(region.NUM_REQUESTS, rate=rate))
    cells = [(seqs, budget) for budget in region.BUDGETS for seqs in region.SEQS]
    pool = CacheConfig(blocks)
    return {(s, b): run_trial(Trial(Setting(SchedulerConfig(b, s), pool), load, region.COST)) for s, b in cells}


@settings(max_examples=3, deadline=None)
@given(st.sampled_from(BLOCKS), st.sampled_from(RATES))
def test_the_cells_that_are_not_run_would_come_out_the_same(blocks, rate):
    assert region.outcomes(blocks, rate) == trials(blocks, rate)


def test_at_a_low_load_more_places_change_nothing():
    region.outcome.cache_clear()
    region.outcomes(2048, 1)
    assert region.outcome.cache_info().currsize < len(region.SEQS) * len(region.BUDGETS)


@pytest.mark.parametrize("setting", [{}, {"rate": 2.8}, {"blocks": 1024, "itl": 25}])
def test_verdicts_are_the_labs_own(setting):
    values = DEFAULTS | setting
    found = trials(values["blocks"], values["rate"])
    criteria = Criteria(slo=SLO(ttft=values["ttft"], itl=values["itl"] / 1e3))
    want = dict(zip(found, judge_all(list(found.values()), criteria)))
    numbers = reply(**setting)["numbers"]
    assert {(s, b): verdict for s, b, verdict in numbers["verdicts"]} == {c: j.verdict.value for c, j in want.items()}
    here = values["max_num_seqs"], values["budget"]
    assert numbers["here"]["misses"] == plain(want[here].misses)


@settings(max_examples=12, deadline=None)
@given(any_settings(region.FIGURE))
def test_the_wall_lies_between_two_marks(setting):
    """The map itself, drawn for those loads, says the same of the cell, under-use aside."""
    setting["blocks"] = 2048  # one pool, so that its maps are made once
    wall = reply(**setting)["numbers"]["wall"]
    for rate, holds in ((wall["holds"], True), (wall["breaks"], False)):
        if rate is not None:
            misses = reply(**setting | {"rate": rate})["numbers"]["here"]["misses"]
            broken = [miss["verdict"] for miss in misses if miss["verdict"] != Verdict.UNDER_USED.value]
            assert (broken == []) == holds
    marks = (math.inf, *reversed(RATES), -math.inf)
    low, high = (wall["holds"] or -math.inf, wall["breaks"] or math.inf)
    assert marks.index(low) == marks.index(high) + 1


def test_the_map_has_every_verdict_and_says_where_to_go():
    found = {verdict for rate in (2.4, 2.8) for _, _, verdict in reply(rate=rate)["numbers"]["verdicts"]}
    assert found == {verdict.value for verdict in Verdict} == {verdict.value for verdict in VERDICTS}
    assert reply(max_num_seqs=8, budget=8192)["numbers"]["nearest_stable"] == [32, 512]
    assert "No cell is stable" in reply(rate=8)["text"]


def test_every_criterion_that_can_break_has_words():
    """The worst run there could be breaks all of them but the two limits that this SLO doesn't have."""
    one = region.outcome(8, 128, 2048, 2.4).summary
    late = Distribution(1, *(5 * [1e9]))
    worst = replace(one, preemptions=9**9, useful_ratio=0, output_tokens_per_s=0, refused=1, ttft=late, itl=late)
    judgement = judge(worst, 9, 1, Criteria(slo=SLO(ttft=1, itl=1)))
    assert {miss.criterion for miss in judgement.misses} == CRITERIA.keys()
    assert len(list(notes_of(judgement))) == len(CRITERIA) - 1
    for miss in judgement.misses:
        for words in explain(miss):
            assert f" {miss.value:.3g}{miss.unit} " in words and words.endswith(f" {miss.limit:.3g}{miss.unit}")


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_reader_is_in_the_cell_of_the_sliders(lang):
    """The frame is drawn around the cell whose verdict the text gives."""
    for seqs, budget in ((8, 128), (64, 8192)):
        found = reply(lang, max_num_seqs=seqs, budget=budget)
        frame = next(line for line in found["svg"].splitlines() if "stroke-width" in line)
        column, row = region.BUDGETS.index(budget), region.SEQS.index(seqs)
        size = (680 - 54) / len(region.BUDGETS)
        assert f'x="{44 + size * column + 3:.1f}"' in frame
        assert f'y="{28 + 44 * (len(region.SEQS) - 1 - row) + 3:.1f}"' in frame
        _, _, word = next(VERDICTS[v] for v in Verdict if [seqs, budget, v.value] in found["numbers"]["verdicts"])
        assert word.of(lang) in found["text"]
