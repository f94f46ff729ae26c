"""The loop on virtual time, by numbers worked out by hand."""

import pytest

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.metrics import request_metrics
from lab.sim import LinearCost, VirtualClock, simulate


def test_the_clock_never_goes_back():
    clock = VirtualClock()
    clock.wait_until(2.0)
    clock.wait_until(1.0)
    clock.advance(0.5)
    assert clock.now() == 2.5


def test_a_step_takes_what_it_costs_and_waiting_takes_no_time():
    scheduler = Scheduler(SchedulerConfig(100, 4), CacheConfig(100))
    a = Request("a", range(150), SamplingParams(2), arrival=1.0)
    late = Request("late", range(10), SamplingParams(1), arrival=60.0)
    trace = simulate([a, late], scheduler, LinearCost(step_ms=10, token_ms=0.1))
    assert [(step.start, step.end) for step in trace.steps] == [
        pytest.approx(times) for times in ((1.0, 1.02), (1.02, 1.035), (1.035, 1.0451), (60.0, 60.011))
    ]
    assert request_metrics(trace.requests["a"]).ttft == pytest.approx(0.035)


@pytest.mark.parametrize("chunk, steps, ttft_ms", [(4096, 1, 86.92), (512, 8, 121.92), (64, 64, 401.92)])
def test_smaller_chunks_make_a_lone_prompt_slower(chunk, steps, ttft_ms):
    """A prompt of 4,096 under the default cost: 5 ms for each step, 0.02 ms for each token."""
    scheduler = Scheduler(SchedulerConfig(chunk, 1), CacheConfig(256))
    trace = simulate([Request("a", range(4096), SamplingParams(1))], scheduler, LinearCost())
    assert len(trace.steps) == steps
    assert request_metrics(trace.requests["a"]).ttft * 1e3 == pytest.approx(ttft_ms)
