"""Trials and the wall, on a machine that is simple enough to know where its wall is."""

import math
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core import CacheConfig, ConfigError, Request, SamplingParams, SchedulerConfig
from lab.sim.cost_model import LinearCost
from lab.sim.load import Load
from lab.sim.stability import Criteria, Verdict
from lab.sim.summary import SLO
from lab.sim.trial import Setting, Trial, judge_all, run_trial
from lab.sim.tune import NearMiss, Tuned, bisect_knob, bisect_load, tune

COST = LinearCost(step_ms=10, token_ms=0)  # 10 ms a step, whatever is in it
EVERY_SECOND = Load(tuple((float(i), 10, 10) for i in range(100)))  # 10 steps of one request: 0.1 s alone


def setting(max_num_seqs: int, num_blocks: int = 1000, budget: int = 512) -> Setting:
    return Setting(SchedulerConfig(budget, max_num_seqs), CacheConfig(num_blocks))


def here(trials):
    return [run_trial(trial) for trial in trials]


def judged(settings, load):
    outcomes = here([Trial(s, load, COST) for s in settings])
    return [judgement.verdict for judgement in judge_all(outcomes, Criteria())]


def test_a_load_is_its_requests():
    requests = [Request("x", range(7), SamplingParams(3), arrival=1.0), Request("y", range(5), arrival=3.0)]
    load = Load.of(requests)
    assert load.shapes == ((1.0, 7, 3), (3.0, 5, 16)) and load.rate == 0.5
    assert [request.arrival for request in load.requests(speed=4)] == [0.25, 0.75]
    for at_once in (Load(()), Load(((1.0, 1, 1),) * 3)):
        with pytest.raises(ConfigError, match="all come at once"):
            _ = at_once.rate


def test_a_trial_is_values_and_repeats_itself():
    trial = pickle.loads(pickle.dumps(Trial(setting(2, num_blocks=3), EVERY_SECOND, COST, 30.0)))
    outcome = run_trial(trial)
    assert outcome == run_trial(trial) == pickle.loads(pickle.dumps(outcome))
    assert outcome.growth > 0.05 and outcome.summary.finished == 100
    assert run_trial(replace(trial, slo=SLO(ttft=0.001))).summary.goodput == 0 < outcome.summary.goodput


def test_too_few_slots_waste_the_machine_and_too_few_blocks_thrash():
    """At 15 requests/s one slot serves 10 and two keep up. Of two requests, 3 blocks hold one to its end."""
    fast = Load(tuple((i / 15, 16, 10) for i in range(150)))
    assert judged([setting(1), setting(2), setting(8)], fast) == [Verdict.UNDER_USED, Verdict.STABLE, Verdict.STABLE]
    assert judged([setting(8, num_blocks=3)], fast) == [Verdict.THRASH]
    assert judged([setting(1)], fast) == [Verdict.QUEUE_BOUND]  # with no better setting it is the load that is too much


def test_the_wall_of_one_slot_is_ten_requests_a_second():
    tuned = tune([setting(1)], EVERY_SECOND, COST, Criteria(queue_growth=0.01), here)
    assert isinstance(tuned, Tuned) and tuned.rate == 1.0
    assert tuned.wall.holds <= 10.2 and tuned.wall.breaks >= 10 and tuned.margin == tuned.wall.holds - 1
    assert tuned.wall.breaks <= 1.02 * tuned.wall.holds
    assert tuned.wall.because.verdict is Verdict.QUEUE_BOUND


def test_the_setting_with_the_farthest_wall_wins():
    tuned = tune([setting(1), setting(4), setting(2)], EVERY_SECOND, COST, Criteria(), here)
    assert tuned.outcome.setting == setting(4) and tuned.outcome.speed == 1.0
    assert 40 <= tuned.wall.holds < 44


def test_of_equal_settings_the_smaller_wins_unless_the_slo_has_a_say():
    """Batches of at most 64 requests of 10 steps: nothing tells 64 slots from 128 but their size."""
    load = Load(tuple((i * 1.0, 10, 10) for i in range(64)))
    assert tune([setting(128), setting(64)], load, COST, Criteria(), here).outcome.setting == setting(64)


def test_the_largest_max_num_seqs_that_is_stable():
    """8 requests at once, of 25 slots each: 8 blocks hold 4 to their end; a fifth is admitted, and thrown out."""
    load = Load(tuple((float(second), 16, 10) for second in range(20) for _ in range(8)))
    tuned = tune([setting(2, num_blocks=8)], load, COST, Criteria(), here)
    assert isinstance(tuned, Tuned) and tuned.most_seqs == 4
    assert tune([setting(2)], load, COST, Criteria(), here).most_seqs == 160  # as many as there are requests


def test_no_setting_meets_the_slo():
    """A prompt takes one step of 10 ms; asked for 4 ms the nearest setting is 2.5 times too slow."""
    miss = tune([setting(1), setting(2)], EVERY_SECOND, COST, Criteria(slo=SLO(ttft=0.004)), here)
    assert isinstance(miss, NearMiss) and miss.judgement.verdict is Verdict.SLO_MISS
    assert miss.judgement.factor == pytest.approx(2.5, rel=0.002)
    assert miss.lower is None  # no load is so low that a step gets shorter


def test_too_high_a_load_is_answered_with_the_wall_below_it():
    """One slot serves ten requests a second, whatever is asked for."""
    fast = Load(tuple((i / 35, 10, 10) for i in range(200)))
    miss = tune([setting(1)], fast, COST, Criteria(queue_growth=0.01), here)
    assert isinstance(miss, NearMiss) and miss.lower is not None and miss.lower.rate == pytest.approx(35)
    wall = miss.lower.wall
    assert wall.holds <= 10.3 and wall.breaks >= 9.8 and wall.breaks <= 1.02 * wall.holds
    assert miss.lower.margin == pytest.approx(wall.holds / 35 - 1)


@given(st.floats(1.0, 4000.0))
def test_bisection_finds_any_wall(wall):
    low, high = bisect_load(lambda speed: speed <= wall)
    assert low <= wall < high <= 1.02 * low


def test_a_wall_that_is_known_is_not_asked_for_again():
    low, high = bisect_load(lambda speed: True, 0.5, 1.0)
    assert low < high <= 1.0 and high <= 1.02 * low


def test_no_wall_is_said_to_be_none():
    assert bisect_load(lambda speed: True) == (4096.0, math.inf)


@given(st.integers(1, 50), st.integers(0, 200), st.integers(0, 400))
def test_bisection_finds_the_largest_value_of_a_knob(low, more, extra):
    wall, most = low + more, low + extra
    tried = []
    assert bisect_knob(lambda n: tried.append(n) or n <= wall, low, most) == min(wall, most)
    assert all(low < n <= most for n in tried)
