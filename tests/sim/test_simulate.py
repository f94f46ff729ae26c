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
