"""Numbers of public problem reports, worked out under the default cost: 5 ms for a step, 0.02 ms for a token in it."""

import pytest

from lab.core import (
    CacheConfig,
    NoProgress,
    Request,
    SamplingParams,
    Scheduler,
    SchedulerConfig,
    StepPlan,
)
from lab.core.metrics import longest_gap, request_metrics
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.sim.summary import Summary
from lab.sim.tally import summarize


def run(shape, n, *, blocks, seqs, budget=512, policy="vllm") -> Summary:
    """`n` requests of one (prompt, max_tokens) at once, in blocks of 16."""
    requests = [Request(f"r{i}", range(shape[0]), SamplingParams(shape[1])) for i in range(n)]
    scheduler = POLICIES[policy](SchedulerConfig(budget, seqs), CacheConfig(blocks, 16))
    return summarize(simulate(requests, scheduler, LinearCost()), blocks)


@pytest.mark.parametrize(
    "policy, tokens_per_s, preemptions, recomputed", [("first-chunk", 385.8, 210, 230_757), ("vllm", 679.0, 0, 0)]
)
def test_admission_by_the_first_chunk_thrashes(policy, tokens_per_s, preemptions, recomputed):
    """vllm#18115: prompts of 2,048 in a pool for 5.5 requests."""
    summary = run((2048, 128), 32, blocks=748, seqs=8, policy=policy)
    assert summary.output_tokens_per_s == pytest.approx(tokens_per_s, abs=0.05)
    assert (summary.preemptions, summary.recomputed_tokens) == (preemptions, recomputed)


@pytest.mark.parametrize(
    "policy, tokens_per_s, preemptions, gap_ms",
    [("reserve", 608.4, 0, 15.2), ("vllm", 631.5, 8, 281), ("first-chunk", 509.8, 54, 599)],
)
def test_greedy_packing_against_guaranteed_completion(policy, tokens_per_s, preemptions, gap_ms):
    """TensorRT-LLM#16827: the same load in a pool for 4.9 requests. Reserve loses 4 % and wins the tail."""
    summary = run((2048, 128), 32, blocks=666, seqs=8, policy=policy)
    assert summary.output_tokens_per_s == pytest.approx(tokens_per_s, abs=0.05)
    assert summary.preemptions == preemptions
    assert summary.longest_gap * 1e3 == pytest.approx(gap_ms, abs=0.5)


def test_off_pressure_all_three_rules_are_one():
    rates = [
        run((2048, 128), 32, blocks=666, seqs=4, policy=p).output_tokens_per_s
        for p in ("reserve", "vllm", "first-chunk")
    ]
    assert max(rates) < 1.01 * min(rates)


@pytest.mark.parametrize(
    "seqs, tokens_per_s, preemptions, gap_ms",
    [
        (1, 198.4, 0, None),
        (2, 393.7, 0, None),
        (4, 775.4, 0, None),
        (8, 1504.5, 0, 5.2),
        (12, 1669.0, 31, 279.5),
        (16, 1666.1, 35, 337),
        (32, 1666.1, 35, 337),
    ],
)
def test_past_the_knee_the_tail_breaks_while_throughput_still_rises(seqs, tokens_per_s, preemptions, gap_ms):
    """vllm#17598: short prompts, 8 blocks each at their end, in a pool of 64."""
    summary = run((64, 64), 64, blocks=64, seqs=seqs)
    assert summary.output_tokens_per_s == pytest.approx(tokens_per_s, abs=0.05)
    assert summary.preemptions == preemptions
    if gap_ms is not None:
        assert summary.longest_gap * 1e3 == pytest.approx(gap_ms, abs=0.5)


def test_a_request_that_can_never_fit_is_refused_and_harms_nobody():
    """vllm#39734: 33 tokens in a pool of 32."""
    scheduler = Scheduler(SchedulerConfig(64, 4), CacheConfig(8, 4))
    requests = [Request("head", range(33), SamplingParams(1)), Request("second", range(4), SamplingParams(2))]
    trace = simulate(requests, scheduler, LinearCost())
    assert "33" in trace.refused["head"] and "32" in trace.refused["head"]
    assert len(trace.requests["second"].token_times) == 2 and list(trace.requests) == ["second"]


def test_without_the_check_the_first_step_says_that_nothing_moves():
    class Unchecked(Scheduler):
        def _check(self, request):
            pass

    scheduler = Unchecked(SchedulerConfig(64, 4), CacheConfig(8, 4))
    with pytest.raises(NoProgress, match="'head'.*33 tokens, 8 free blocks"):
        simulate([Request("head", range(33), SamplingParams(1)), Request("b", range(4))], scheduler, LinearCost())
    assert scheduler.pool.num_used == 0


@pytest.mark.parametrize("prompt, max_tokens, refused", [(33, 1, True), (32, 1, False), (32, 2, True)])
def test_longer_than_the_pool_by_one(prompt, max_tokens, refused):
    """vllm#7878: the message names what was asked and what there is, and no block is taken."""
    scheduler = Scheduler(SchedulerConfig(8, 4), CacheConfig(8, 4))
    trace = simulate([Request("a", range(prompt), SamplingParams(max_tokens))], scheduler, LinearCost())
    assert (["a"] if refused else []) == list(trace.refused) and scheduler.pool.num_used == 0
    if refused:
        assert "33" in trace.refused["a"] and "32" in trace.refused["a"]


@pytest.mark.parametrize(
    "policy, budget, steps, gap_ms",
    [("prefill-first", 512, 9, 126.94), ("alternate", 512, 2, 20.26), ("vllm", 512, 1, 15.24), ("vllm", 128, 1, 7.56)],
)
def test_the_gap_of_a_decode_beside_a_long_prompt(policy, budget, steps, gap_ms):
    """sglang#32549: one decode and a prompt of 8 x 512. 8 x 15.24 + 5.02 ms apart where it goes first."""
    scheduler = POLICIES[policy](SchedulerConfig(budget, 8), CacheConfig(400))
    decode = Request("decode", range(4), SamplingParams(60))
    prompt = Request("prompt", range(8 * 512), SamplingParams(1), arrival=0.010)
    trace = simulate([decode, prompt], scheduler, LinearCost())
    seen = [index for index, step in enumerate(trace.steps) if "decode" in step.num_tokens]
    assert max(b - a for a, b in zip(seen, seen[1:])) == steps
    assert longest_gap(trace) * 1e3 == pytest.approx(gap_ms)


class NotedContext(LinearCost):
    """Adds up the tokens whose KV the steps read."""

    read = 0

    def seconds(self, plan: StepPlan, scheduler: Scheduler) -> float:
        type(self).read += sum(scheduler.requests[name].num_computed_tokens for name in plan.num_tokens)
        return super().seconds(plan, scheduler)


@pytest.mark.parametrize(
    "chunk, steps, ttft_ms, read", [(4096, 1, 86.92, 4096), (512, 8, 121.92, 18_432), (64, 64, 401.92, 133_120)]
)
def test_smaller_chunks_are_slower_and_read_the_kv_again(chunk, steps, ttft_ms, read):
    """vllm#7604: a prompt of 4,096 alone."""
    NotedContext.read = 0
    scheduler = Scheduler(SchedulerConfig(chunk, 1), CacheConfig(256))
    trace = simulate([Request("a", range(4096), SamplingParams(1))], scheduler, NotedContext())
    assert (len(trace.steps), NotedContext.read) == (steps, read)
    assert request_metrics(trace.requests["a"]).ttft * 1e3 == pytest.approx(ttft_ms)


def test_full_pool_two_running():
    """vllm#1607: 2 x 16 of 32 blocks are 100 %, and after the last request none is used."""
    requests = [Request(name, range(250), SamplingParams(4)) for name in "ab"]
    scheduler = Scheduler(SchedulerConfig(512, 8), CacheConfig(32, 16))
    trace = simulate(requests, scheduler, LinearCost())
    assert [(step.num_running, step.used_blocks) for step in trace.steps[:1]] == [(2, 32)]
    assert trace.steps[-1].free_blocks == 32
