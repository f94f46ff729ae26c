"""Sources of requests: rates, bursts, clients that wait, and loads like the published traces."""

import random
from itertools import islice, pairwise
from statistics import fmean, stdev

import pytest

from lab.core import CacheConfig, ConfigError, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.sim import LinearCost, simulate
from lab.sim.arrivals import ByStep, ClosedLoop, fixed, gamma, poisson
from lab.sim.synthetic import SYNTHETIC, Quantiles
from lab.sim.tally import summarize


def make_scheduler(**limits) -> Scheduler:
    return Scheduler(
        SchedulerConfig(**{"max_num_batched_tokens": 2048, "max_num_seqs": 64} | limits), CacheConfig(10_000)
    )


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_the_gaps_have_the_mean_and_spread_that_they_should(burstiness):
    arrivals = [r.arrival for r in gamma(20_000, 5.0, fixed(8, 2), burstiness, seed=1)]
    gaps = [b - a for a, b in pairwise(arrivals)]
    assert fmean(gaps) == pytest.approx(1 / 5, rel=0.05)
    assert stdev(gaps) / fmean(gaps) == pytest.approx(burstiness**-0.5, rel=0.05)


def test_a_seed_is_a_load():
    def arrivals(seed):
        return [r.arrival for r in poisson(5, 2.0, fixed(8, 2), seed=seed)]

    assert arrivals(0) == arrivals(0) != arrivals(1) and arrivals(0)[0] == 0.0


@pytest.mark.parametrize("rate, burstiness", [(0, 1), (-1, 1), (float("nan"), 1), (float("inf"), 1), (1, 0)])
def test_a_rate_is_above_0(rate, burstiness):
    with pytest.raises(ConfigError, match="must be a number above 0"):
        gamma(1, rate, fixed(8, 2), burstiness)


def test_clients_that_wait_never_have_more_in_flight_than_there_are_clients():
    requests = poisson(40, 1.0, fixed(64, 5))  # their own times don't count
    trace = simulate(ClosedLoop(requests, 3, think_time=0.25), make_scheduler(), LinearCost())
    timelines = list(trace.requests.values())
    assert len(timelines) == 40 and max(step.num_running + step.num_waiting for step in trace.steps) == 3
    assert [t.arrival for t in timelines[:3]] == [0.0] * 3
    finished = sorted(t.finished for t in timelines)
    assert [t.arrival for t in timelines[3:]] == pytest.approx([end + 0.25 for end in finished[:37]])


def test_a_refused_request_frees_its_client():
    sizes = [(10**9, 1), (8, 2), (8, 2)]
    requests = [Request(f"r{i}", range(p), SamplingParams(m)) for i, (p, m) in enumerate(sizes)]
    trace = simulate(ClosedLoop(requests, 1), make_scheduler(), LinearCost())
    assert list(trace.refused) == ["r0"] and list(trace.requests) == ["r1", "r2"]
    with pytest.raises(ConfigError, match="concurrency is 0"):
        ClosedLoop([], 0)


def test_steps_are_counted_and_those_with_nothing_to_do_take_no_time():
    timed = [(step, Request(f"r{step}", range(8), SamplingParams(2))) for step in (7, 0)]
    source = ByStep(timed)
    trace = simulate(source, make_scheduler(), LinearCost(10, 0))
    assert source.num_steps == 9 and len(trace.steps) == 4  # steps 0 and 1, 7 and 8
    assert list(trace.requests) == ["r0", "r7"] and trace.requests["r7"].arrival == pytest.approx(0.02)


def test_a_closed_loop_flatters():
    """More output tokens 'improve' the TTFT of 32 clients that wait, while fewer requests are served."""
    ttft, rate = [], []
    for output in (1, 16, 64, 256):
        requests = poisson(512, 1.0, fixed(1024, output))
        trace = simulate(ClosedLoop(requests, 32), make_scheduler(), LinearCost())
        summary = summarize(trace, 10_000)
        ttft.append(summary.ttft.mean * 1e3)
        rate.append(summary.finished / summary.duration)
    assert ttft == pytest.approx([713.8, 89.0, 78.5, 78.5], abs=0.1)
    assert rate == pytest.approx([43.5, 42.5, 31.3, 15.2], abs=0.1)


def test_an_open_loop_does_not():
    ttft = []
    for output in (1, 16, 64, 256):
        trace = simulate(poisson(512, 12.0, fixed(1024, output)), make_scheduler(), LinearCost())
        ttft.append(summarize(trace, 10_000).ttft.mean)
    assert ttft == sorted(ttft)


def test_percentiles_are_interpolated_on_a_logarithmic_scale():
    q = Quantiles(((0, 1), (50, 100), (100, 400)))
    assert [q.at(p) for p in (0, 25, 50, 75, 100)] == pytest.approx([1, 10, 100, 200, 400])
    assert {q.draw(random.Random(seed)) for seed in range(200)} <= set(range(1, 401))


@pytest.mark.parametrize(
    "name, prompt, output", [("azure-conv", 1155, 211), ("azure-code", 2048, 28), ("mooncake-conversation", 12035, 343)]
)
def test_synthetic_loads_have_the_statistics_of_their_traces(name, prompt, output):
    requests = list(islice(SYNTHETIC[name].requests(20_000, rate=5.0), 20_000))
    assert fmean(r.num_prompt_tokens for r in requests) == pytest.approx(prompt, rel=0.06)
    assert fmean(r.sampling.max_tokens for r in requests) == pytest.approx(output, rel=0.12)
    assert min(r.num_prompt_tokens for r in requests) >= 1 and min(r.sampling.max_tokens for r in requests) >= 1
    assert "trace" in SYNTHETIC[name].source


def test_the_bursts_of_code_are_not_those_of_conversation():
    def spread(name):
        arrivals = [r.arrival for r in SYNTHETIC[name].requests(20_000)]
        gaps = [b - a for a, b in pairwise(arrivals)]
        return stdev(gaps) / fmean(gaps)

    assert spread("azure-conv") == pytest.approx(1.09, rel=0.05) and spread("azure-code") > 8
