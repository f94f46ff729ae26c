"""The loop, its trace and its metrics, on a clock that moves 10 ms per step."""

import subprocess
import sys

import pytest

from lab.core import (
    CacheConfig,
    FinishReason,
    Loop,
    NoProgress,
    Request,
    SamplingParams,
    Scheduler,
    SchedulerConfig,
    Trace,
    WaitReason,
)
from lab.core.metrics import gaps, longest_gap, percentile, request_metrics, useful_ratio
from lab.core.trace import RequestTimeline


class FakeClock:
    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def wait_until(self, moment):
        self.time = max(self.time, moment)


class ConstantModel:
    """Takes 10 ms for any step and always says token 7."""

    def __init__(self, clock):
        self.clock = clock

    def execute(self, plan, scheduler):
        self.clock.time += 0.01
        return {r: 7 for r in plan.num_tokens if scheduler.requests[r].num_uncomputed_tokens == 0}


def make_loop(budget=8, num_blocks=20, **config) -> Loop:
    clock = FakeClock()
    scheduler = Scheduler(SchedulerConfig(budget, 4, **config), CacheConfig(num_blocks, 4))
    return Loop(scheduler, ConstantModel(clock), clock)


def test_the_trace_times_what_each_request_saw():
    loop = make_loop()
    late = Request("b", range(2), SamplingParams(1), arrival=1.0)
    trace = loop.run([Request("a", range(13), SamplingParams(3)), late])
    a, b = trace.requests["a"], trace.requests["b"]
    assert [dict(step.num_tokens) for step in trace.steps] == [{"a": 8}, {"a": 5}, {"a": 1}, {"a": 1}, {"b": 2}]
    assert a.token_times == pytest.approx([0.02, 0.03, 0.04]) and a.finish_reason is FinishReason.LENGTH
    assert b.first_scheduled == 1.0 and b.finished == pytest.approx(1.01)
    assert (a.num_computed_tokens, b.num_computed_tokens) == (15, 2) and useful_ratio(trace) == 1.0
    assert longest_gap(trace) == pytest.approx(0.01)


def test_preemption_and_recomputed_tokens_are_counted():
    loop = make_loop(num_blocks=4)
    trace = loop.run([Request("old", range(8), SamplingParams(9)), Request("new", range(4), SamplingParams(9))])
    new = trace.requests["new"]
    assert any("new" in step.preempted for step in trace.steps) and new.num_computed_tokens > 4 + 9 - 1
    assert len(new.token_times) == 9 and useful_ratio(trace) < 1


def test_abort_is_in_the_trace_and_the_rest_goes_on():
    loop = make_loop()
    for name in "ab":
        loop.submit(Request(name, range(4), SamplingParams(5)))
    loop.step()
    assert loop.abort("a") and not loop.abort("a") and not loop.abort("nobody")
    loop.run()
    assert loop.trace.requests["a"].finish_reason is FinishReason.ABORT
    assert len(loop.trace.requests["b"].token_times) == 5


def test_no_progress_is_an_error_that_names_the_head_and_loses_nothing():
    loop = make_loop(budget=8, enable_chunked_prefill=False, num_blocks=5)
    loop.scheduler._check = lambda request: None  # what submit would refuse
    loop.submit(Request("first", range(8), SamplingParams(8)))
    loop.submit(Request("stuck", range(7), SamplingParams(9)))
    with pytest.raises(NoProgress, match=r"'stuck'.*budget"):  # preempted with 9 known tokens: no step takes them whole
        loop.run()
    assert loop.trace.requests["first"].finish_reason is FinishReason.LENGTH
    assert [r.request_id for r in loop.scheduler.waiting] == ["stuck"] and loop.scheduler.pool.num_used == 0
    assert loop.abort("stuck")
    loop.run([Request("next", range(4), SamplingParams(2))])
    assert len(loop.trace.requests["next"].token_times) == 2


def test_a_step_that_fails_can_be_tried_again():
    loop = make_loop(budget=4)
    execute, failures = loop.executor.execute, iter([False, True, False, True, True])

    def sometimes_interrupted(plan, scheduler):
        if next(failures, False):
            raise KeyboardInterrupt
        return execute(plan, scheduler)

    loop.executor.execute = sometimes_interrupted
    loop.submit(Request("a", range(9), SamplingParams(3)))
    steps = []
    while loop.scheduler.has_unfinished:
        try:
            steps.append(dict(loop.step().num_tokens))
        except KeyboardInterrupt:
            continue
    assert steps == [{"a": 4}, {"a": 4}, {"a": 1}, {"a": 1}, {"a": 1}] and loop.scheduler.pool.num_used == 0


def test_a_step_with_nothing_to_do_runs_no_model():
    loop = make_loop()
    loop.executor = None
    assert loop.step().num_tokens == {}


def test_metrics_on_the_five_tokens_where_people_differ():
    timeline = RequestTimeline(0.0, 4, first_scheduled=0.25, token_times=[1.0, 1.1, 1.2, 2.2, 2.3])
    metrics = request_metrics(timeline)
    assert metrics.ttft == 1.0 and metrics.queue == 0.25 and metrics.e2e == 2.3
    assert metrics.tpot == pytest.approx(0.325)
    assert percentile(metrics.itl, 50) == pytest.approx(0.1) and max(metrics.itl) == pytest.approx(1.0)
    assert request_metrics(RequestTimeline(0.0, 4, 0.0, [1.0])).tpot is None
    with pytest.raises(ValueError, match="no token"):
        request_metrics(RequestTimeline(0.0, 4))


def test_percentile_is_a_sample_and_never_above_the_maximum():
    assert percentile([10, 20, 30], 99) == 30
    assert percentile([1, 2], 95) <= 2
    assert percentile([5], 1) == 5
    assert percentile(range(1, 101), 99) == 99
    for bad in (0, 101):
        with pytest.raises(ValueError):
            percentile([1], bad)
    with pytest.raises(ValueError):
        percentile([], 50)
    assert gaps([1, 2, 4]) == (1, 2)


def test_core_loads_neither_torch_nor_numpy():
    code = "import sys, lab.core, lab.core.metrics; print({'torch', 'numpy', 'matplotlib'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_refused_request_is_recorded_and_the_rest_goes_on():
    loop = make_loop(num_blocks=8)
    requests = [Request("a", range(4), SamplingParams(2)), Request("too long", range(33)), Request("a", range(3))]
    requests += [Request("never", range(3), arrival=moment) for moment in (float("nan"), float("inf"))]
    trace = loop.run([*requests, Request("last", range(3), SamplingParams(1), arrival=5.0)])
    assert list(trace.refused) == ["too long", "a", "never"]
    assert "48 KV slots" in trace.refused["too long"] and "already here" in trace.refused["a"]
    assert "arrives at inf" in trace.refused["never"]
    assert {name: len(timeline.token_times) for name, timeline in trace.requests.items()} == {"a": 2, "last": 1}


def test_a_step_says_what_was_there_when_it_was_planned():
    trace = make_loop(budget=8).run([Request(name, range(6), SamplingParams(2)) for name in "ab"])
    seen = [(s.used_blocks, s.free_blocks, s.num_running, s.num_waiting) for s in trace.steps]
    assert seen == [(3, 17, 2, 0), (4, 18, 2, 0), (2, 20, 1, 0)]
    trace = make_loop(budget=4).run([Request(name, range(6), SamplingParams(1)) for name in "ab"])
    assert [(s.num_waiting, s.head_waits_for) for s in trace.steps[:2]] == [(1, WaitReason.BUDGET), (0, None)]
    assert trace.steps[0].num_running == 1


def test_a_trace_of_ones_own_takes_the_place_of_the_loops():
    mine = Trace()
    loop = make_loop()
    loop = Loop(loop.scheduler, loop.executor, loop.clock, mine)
    assert loop.run([Request("a", range(4), SamplingParams(1))]) is mine and len(mine.steps) == 1
