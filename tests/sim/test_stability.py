"""The criteria of the stable region: each on its own, in order of cause, and on loads whose end is known."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.sim.samples import Distribution
from lab.sim.stability import Criteria, Verdict, judge, queue_growth
from lab.sim.summary import SLO, Summary

NOTHING = Distribution(0, *[math.nan] * 5)
CALM = Distribution(200, *[0.01] * 5)
STABLE = Summary(
    requests=200, finished=200, refused=0, steps=1000, duration=10.0, preemptions=0, computed_tokens=1000,
    recomputed_tokens=0, useful_ratio=1.0, output_tokens=1000, output_tokens_per_s=100.0, goodput=20.0,
    longest_gap=0.01, ttft=CALM, itl=CALM, tpot=CALM, e2e=CALM, queue=CALM, kv_peak_blocks=10, kv_mean_usage=0.5,
    max_waiting=1, waiting_reasons={},
)  # fmt: skip
CRITERIA = Criteria(slo=SLO(ttft=1.0, itl=0.05))

# One fault a criterion: what it does to the summary and to the queue's growth, and what must be said of it.
FAULTS = [
    ({"preemptions": 3}, 0.0, Verdict.THRASH, "preemptions per request 0.015 > 0.01"),
    ({"useful_ratio": 0.9}, 0.0, Verdict.THRASH, "useful / computed tokens 0.9 < 0.95"),
    ({"output_tokens_per_s": 80.0}, 0.0, Verdict.UNDER_USED, "throughput / best 0.8 < 0.9"),
    ({}, 0.2, Verdict.QUEUE_BOUND, "queue growth 0.2 > 0.05"),
    ({"refused": 1}, 0.0, Verdict.SLO_MISS, "refused requests 1 > 0"),
    ({"ttft": replace(CALM, p99=1.3)}, 0.0, Verdict.SLO_MISS, "ttft p99 1.3 s > 1 s"),
    ({"itl": replace(CALM, p99=0.06)}, 0.0, Verdict.SLO_MISS, "itl p99 0.06 s > 0.05 s"),
]


def test_nothing_broken_is_stable():
    assert judge(STABLE, 0.0, 100.0, CRITERIA).verdict is Verdict.STABLE
    assert judge(replace(STABLE, itl=NOTHING, tpot=NOTHING), 0.0, 100.0, CRITERIA).stable  # one token each


@pytest.mark.parametrize("changes, growth, verdict, text", FAULTS)
def test_each_criterion_is_seen_alone_with_its_number(changes, growth, verdict, text):
    judgement = judge(replace(STABLE, **changes), growth, 100.0, CRITERIA)
    assert judgement.verdict is verdict and [str(miss) for miss in judgement.misses] == [text]
    assert judgement.factor > 1


@given(st.sets(st.sampled_from(range(len(FAULTS))), min_size=1))
def test_the_verdict_is_the_first_cause_and_no_miss_is_lost(chosen):
    faults = [FAULTS[i] for i in sorted(chosen)]
    changes = {name: value for changes, *_ in faults for name, value in changes.items()}
    judgement = judge(replace(STABLE, **changes), max(growth for _, growth, *_ in faults), 100.0, CRITERIA)
    assert judgement.verdict is faults[0][2]
    assert [str(miss) for miss in judgement.misses] == [text for *_, text in faults]


def test_values_on_the_limit_are_within_it():
    summary = replace(STABLE, preemptions=2, useful_ratio=0.95, output_tokens_per_s=90.0, ttft=replace(CALM, p99=1.0))
    assert judge(summary, 0.05, 100.0, CRITERIA).stable


def test_a_refused_request_is_no_small_miss():
    assert judge(replace(STABLE, refused=1), 0.0, 100.0, CRITERIA).factor == math.inf


@given(st.floats(1.1, 10), st.integers(50, 200))
def test_growth_is_the_share_that_no_server_serves(rho, n):
    """Requests come each 1/rho s, a server takes 1 s for each: of rho that come in a second, rho - 1 stay."""
    arrivals = [i / rho for i in range(n)]
    waiting = [(float(s), s + 1.0, sum(moment <= s for moment in arrivals) - s - 1) for s in range(n)]
    assert queue_growth(waiting, arrivals) == pytest.approx(1 - 1 / rho, abs=3 * rho / n)


def test_a_long_queue_that_does_not_grow_is_bounded():
    arrivals = [float(i) for i in range(100)]
    assert queue_growth([(i, i + 1.0, 40) for i in range(100)], arrivals) == pytest.approx(0)
    assert queue_growth([(i, i + 1.0, 100 - i) for i in range(100)], arrivals) == pytest.approx(-1, rel=0.05)


@pytest.mark.parametrize("arrivals", [[], [3.0], [3.0] * 5])
def test_without_a_rate_there_is_no_growth(arrivals):
    assert queue_growth([(3.0, 4.0, 4)], arrivals) == 0
