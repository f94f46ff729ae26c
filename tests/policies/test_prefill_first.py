"""Chunks that never mix, and chunks by turns, beside vLLM's mixing: two decodes and a prompt of 512, budget 64."""

import pytest

from lab.core import CacheConfig, Request, SamplingParams, SchedulerConfig
from lab.core.metrics import longest_gap
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from tests.policies.by_hand import run_step


def two_decodes_and_a_long_prompt(policy: str):
    scheduler = POLICIES[policy](SchedulerConfig(64, 8), CacheConfig(100))
    for name in "ab":
        scheduler.submit(Request(name, range(4), SamplingParams(50)))
    run_step(scheduler), run_step(scheduler)
    scheduler.submit(Request("c", range(512), SamplingParams(4)))
    return scheduler


def test_prefill_first_gives_the_decodes_nothing_for_eight_steps():
    scheduler = two_decodes_and_a_long_prompt("prefill-first")
    assert [run_step(scheduler) for _ in range(9)] == [{"c": 64}] * 8 + [{"a": 1, "b": 1, "c": 1}]


def test_vllm_mixes_in_every_step():
    scheduler = two_decodes_and_a_long_prompt("vllm")
    assert [run_step(scheduler) for _ in range(9)] == [{"a": 1, "b": 1, "c": 62}] * 8 + [{"a": 1, "b": 1, "c": 16}]


def test_alternate_takes_turns_and_twice_the_steps():
    scheduler = two_decodes_and_a_long_prompt("alternate")
    assert [run_step(scheduler) for _ in range(16)] == [{"c": 64}, {"a": 1, "b": 1}] * 7 + [
        {"c": 64},
        {"a": 1, "b": 1, "c": 1},
    ]


def test_who_has_nothing_to_do_passes_and_keeps_its_turn():
    scheduler = POLICIES["alternate"](SchedulerConfig(64, 8), CacheConfig(100))
    scheduler.submit(Request("a", range(4), SamplingParams(50)))
    assert [run_step(scheduler) for _ in range(3)] == [{"a": 4}, {"a": 1}, {"a": 1}]  # no prompt: decodes again
    scheduler.submit(Request("b", range(100), SamplingParams(2)))
    assert [run_step(scheduler) for _ in range(4)] == [{"b": 64}, {"a": 1}, {"b": 36}, {"a": 1, "b": 1}]


@pytest.mark.parametrize(
    "policy, budget, gap_ms",
    [("prefill-first", 512, 126.94), ("vllm", 512, 15.24), ("vllm", 128, 7.56), ("alternate", 512, 20.26)],
)
def test_the_gap_of_a_decode_beside_eight_chunks_of_512(policy, budget, gap_ms):
    """One decode and a prompt of 8 x 512: 8 x 15.24 + 5.02 ms apart, 15.24, and with small chunks 7.56."""
    scheduler = POLICIES[policy](SchedulerConfig(budget, 8), CacheConfig(400))
    decode = Request("decode", range(4), SamplingParams(60))
    prompt = Request("prompt", range(8 * 512), SamplingParams(1), arrival=0.010)
    trace = simulate([decode, prompt], scheduler, LinearCost())
    assert longest_gap(trace) * 1e3 == pytest.approx(gap_ms)
