"""Chunks that never mix, and chunks by turns, beside vLLM's mixing: two decodes and a prompt of 512, budget 64."""

from lab.core import CacheConfig, Request, SamplingParams, SchedulerConfig
from lab.policies import POLICIES
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
