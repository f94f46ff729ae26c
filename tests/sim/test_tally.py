"""Summaries: of a whole trace, as the run goes, and of runs small enough to check by hand."""

import math
import subprocess
import sys
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core import CacheConfig, FinishReason, Request, SamplingParams, Scheduler, SchedulerConfig, WaitReason
from lab.core.metrics import percentile
from lab.core.trace import RequestTimeline
from lab.sim import LinearCost, simulate
from lab.sim.arrivals import fixed, poisson
from lab.sim.samples import Samples
from lab.sim.summary import SLO
from lab.sim.tally import StreamingTrace, Tally, summarize


def test_a_run_by_hand():
    """Steps of 10 ms. a: 8 prompt tokens and 3 out, from 0; b: 4 and 1, from 5 ms; 4 blocks of 4, one seat."""
    scheduler = Scheduler(SchedulerConfig(8, 1), CacheConfig(4, 4))
    requests = [
        Request("a", range(8), SamplingParams(3)),
        Request("b", range(4), SamplingParams(1), arrival=0.005),
        Request("too long", range(17), SamplingParams(1), arrival=0.006),
    ]
    trace = simulate(requests, scheduler, LinearCost(10, 0))
    summary = summarize(trace, 4, SLO(ttft=0.02))
    assert (summary.requests, summary.finished, summary.refused, summary.steps) == (3, 2, 1, 4)
    assert (summary.computed_tokens, summary.recomputed_tokens, summary.output_tokens) == (8 + 2 + 4, 0, 4)
    assert summary.duration == pytest.approx(0.04) and summary.output_tokens_per_s == pytest.approx(100)
    assert (summary.ttft.p50, summary.ttft.p99) == pytest.approx((0.01, 0.035))  # a's, and b's after two more steps
    assert (summary.queue.p50, summary.queue.p99) == pytest.approx((0.0, 0.025))
    assert summary.itl.n == 2 and summary.tpot.n == 1 and summary.longest_gap == pytest.approx(0.01)
    assert summary.e2e.mean == pytest.approx((0.03 + 0.035) / 2)
    assert summary.goodput == pytest.approx(1 / 0.04)  # b's first token came too late
    assert summary.kv_peak_blocks == 3 and summary.kv_mean_usage == pytest.approx((2 + 3 + 3 + 1) / 4 / 4)
    assert summary.max_waiting == 1
    assert {reason: n for reason, n in summary.waiting_reasons.items() if n} == {WaitReason.MAX_SEQS: 2}
    assert summary.ttft.p99_is_max


def test_who_waits_behind_the_head_is_counted_each_step():
    scheduler = Scheduler(SchedulerConfig(64, 1), CacheConfig(64, 4))
    trace = simulate([Request(f"r{i}", range(4), SamplingParams(1)) for i in range(3)], scheduler, LinearCost())
    reasons = summarize(trace, 64).waiting_reasons
    assert (reasons[WaitReason.MAX_SEQS], reasons[WaitReason.BEHIND_HEAD]) == (2, 1)


def test_an_empty_run_has_no_latency():
    summary = summarize(simulate([], Scheduler(SchedulerConfig(), CacheConfig(4)), LinearCost()), 4)
    assert (summary.requests, summary.duration, summary.goodput, summary.useful_ratio) == (0, 0, 0, 1)
    assert summary.ttft.n == 0 and math.isnan(summary.ttft.p99)


@pytest.mark.parametrize(
    "slo, good",
    [(SLO(), 1), (SLO(ttft=0.9), 0), (SLO(tpot=0.32), 0), (SLO(tpot=0.33), 1), (SLO(itl=0.9), 0), (SLO(e2e=2), 0)],
)
def test_an_slo_is_kept_whole_or_not_at_all(slo, good):
    """Tokens at 1.0, 1.1, 1.2, 2.2 and 2.3 s: TTFT 1.0, TPOT 0.325, longest gap 1.0, E2E 2.3."""
    tally = Tally(8, slo)
    times = [1.0, 1.1, 1.2, 2.2, 2.3]
    tally.add_request(RequestTimeline(0.0, 4, 0.1, times, 2.3, FinishReason.LENGTH))
    assert tally.good == good
    tally.add_request(RequestTimeline(0.0, 4, 0.1, times, 2.3, FinishReason.ABORT))
    assert tally.good == good and tally.finished == 1


def test_itl_is_pooled_and_tpot_is_one_mean_per_request():
    """One request with a gap of 1.0, one with nine of 0.1: mean TPOT 0.55, pooled mean ITL 0.19."""
    tally = Tally(8)
    tally.add_request(RequestTimeline(0.0, 4, 0.0, [1.0, 2.0]))
    tally.add_request(RequestTimeline(0.0, 4, 0.0, [1.0 + i / 10 for i in range(10)]))
    assert tally.tpot.distribution().mean == pytest.approx(0.55) and tally.itl.distribution().mean == pytest.approx(
        0.19
    )


def test_percentiles_of_few_samples_are_marked():
    samples = Samples()
    samples.add([10, 20, 30])
    few = samples.distribution()
    assert (few.n, few.mean, few.p50, few.p99) == (3, 20, 20, 30) and few.p99_is_max
    samples.add(range(100))
    assert not samples.distribution().p99_is_max


@pytest.mark.parametrize("blocks, rate", [(60, 60.0), (400, 20.0)])
def test_a_run_counted_as_it_goes_has_the_summary_of_one_that_was_kept(blocks, rate):
    """To the last bit, preemptions or not."""

    def load():
        return poisson(300, rate, fixed(60, 60), seed=3)

    def make_scheduler():
        return Scheduler(SchedulerConfig(512, 16), CacheConfig(blocks, 16))

    kept = simulate(load(), make_scheduler(), LinearCost())
    streamed = simulate(load(), make_scheduler(), LinearCost(), StreamingTrace(blocks))
    assert isinstance(streamed, StreamingTrace) and not streamed.requests and not streamed.steps
    exact = summarize(kept, blocks)
    assert (exact.preemptions > 0) == (blocks == 60)
    assert streamed.tally.summary() == exact


def test_a_streamed_run_counts_the_refused():
    requests = [Request("too long", range(17), SamplingParams(1)), Request("a", range(4), SamplingParams(1))]
    trace = simulate(requests, Scheduler(SchedulerConfig(8, 1), CacheConfig(4, 4)), LinearCost(), StreamingTrace(4))
    assert isinstance(trace, StreamingTrace)
    assert (trace.tally.summary().requests, trace.tally.summary().refused) == (2, 1)


@given(st.lists(st.lists(st.floats(0, 1e6), max_size=30), max_size=30))
def test_samples_are_exact_however_they_come(batches):
    samples = Samples()
    samples.MAX_PENDING = 20  # so that most are put away
    for batch in batches:
        samples.add(batch)
    values = list(chain.from_iterable(batches))
    if not values:
        assert samples.distribution().n == 0
        return
    expected = [math.fsum(values) / len(values), *(percentile(values, q) for q in (50, 90, 95, 99))]
    for _ in range(2):  # asking changes nothing
        assert list(vars(samples.distribution()).values()) == [len(values), *expected]


def test_samples_take_12_bytes_a_value_however_often_it_comes():
    samples = Samples()
    for start in range(100):
        samples.add([start + i / 1000 for i in range(1000)] * 5)
    assert samples.distribution().n == 500_000
    assert sum(len(a) * a.itemsize for run in samples._runs for a in run) == 12 * 100_000


def test_a_long_run_takes_the_memory_of_those_that_are_there_at_once():
    code = (
        "import sys, resource; from lab.core import *; from lab.sim import *; from lab.sim.arrivals import *\n"
        "from lab.sim.tally import StreamingTrace\n"
        "scheduler = Scheduler(SchedulerConfig(2048, 64), CacheConfig(1000))\n"
        "load = poisson(int(sys.argv[1]), 100.0, fixed(16, 2))\n"
        "trace = simulate(load, scheduler, LinearCost(), StreamingTrace(1000))\n"
        "print(trace.tally.finished, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    memory = []
    for n in ("1000", "15000"):
        done = subprocess.run([sys.executable, "-c", code, n], capture_output=True, text=True, check=True)
        finished, kib = done.stdout.split()
        assert finished == n
        memory.append(int(kib))
    assert memory[1] - memory[0] < 4 * 1024  # kept whole, 14,000 requests more take 13 MiB
