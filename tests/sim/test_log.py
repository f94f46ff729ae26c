"""A run as a server would log it, worked out by hand."""

import pytest

from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig
from lab.core.plan import WaitReason
from lab.sim import LinearCost, simulate
from lab.sim.log import LogLine, as_text, log_lines


def run(requests, blocks):
    scheduler = Scheduler(SchedulerConfig(64, 8), CacheConfig(blocks))
    return simulate(requests, scheduler, LinearCost(step_ms=80, token_ms=0))


def test_lines_by_hand():
    """Steps of 0.08 s: the prompt of 100 takes two of them, and counts whole where the second ends."""
    trace = run([Request("a", range(100), SamplingParams(4)), Request("b", range(20), SamplingParams(1))], 16)
    first, second = log_lines(trace, 16, 0.25)
    assert (first.second, second.second) == (0.25, 0.5)
    assert first.prompt_tokens_per_s == 120 / 0.25 and first.output_tokens_per_s == 3 / 0.25
    assert first.computed_tokens_per_s == 121 / 0.25
    assert second.prompt_tokens_per_s == 0 and second.output_tokens_per_s == second.computed_tokens_per_s == 2 / 0.25
    for line in (first, second):
        assert (line.running, line.waiting, line.kv_usage, line.head_waits_for) == (1, 0, 7 / 16, None)


def test_what_is_computed_again_is_no_prompt_and_the_reason_is_the_heads():
    """6 blocks, two requests of 32 + 33 tokens: one is preempted, and its tokens are computed twice."""
    trace = run([Request(name, range(32), SamplingParams(33)) for name in "ab"], 6)
    lines = list(log_lines(trace, 6, 1.0))
    assert sum(line.preemptions for line in lines) == sum(len(step.preempted) for step in trace.steps) == 1
    assert sum(line.prompt_tokens_per_s for line in lines) == 64
    assert sum(line.output_tokens_per_s for line in lines) == 66
    computed = sum(line.computed_tokens_per_s for line in lines)
    assert computed == sum(sum(step.num_tokens.values()) for step in trace.steps) > 64 + 64
    assert WaitReason.BLOCKS in {line.head_waits_for for line in lines}


def test_an_interval_in_which_nothing_ended_has_no_line():
    late = Request("b", range(8), SamplingParams(1), arrival=5.0)
    lines = list(log_lines(run([Request("a", range(8), SamplingParams(1)), late], 8), 8, 1.0))
    assert [line.second for line in lines] == pytest.approx([1.0, 6.0])


def test_as_text():
    line = LogLine(0.2, 1170.0, 480.0, 1645.0, 1, 16, 0, 21 / 66, WaitReason.BLOCKS)
    head, row = as_text([line]).splitlines()
    assert row.split() == ["0.2", "s", "1170", "480", "1", "16", "0", "31.8%", "1645", "blocks"]
    for title, value in (("prompt/s", "1170"), ("waiting", "16"), ("KV", "31.8%"), ("computed/s", "1645")):
        assert head.index(title) + len(title) == row.index(value) + len(value), "a number ends under its title"
