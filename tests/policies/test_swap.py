"""Swapping as the scheduler decides it: who goes to the host, who comes back first, and that no block is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core import CacheConfig, ConfigError, RequestState, SchedulerConfig
from lab.policies.swap import BlockCopy, Swap
from tests.policies.by_hand import request, step


def scheduler(num_blocks: int, num_cpu_blocks: int, max_num_seqs: int = 8, budget: int = 64) -> Swap:
    return Swap(SchedulerConfig(budget, max_num_seqs), CacheConfig(num_blocks, 4, num_cpu_blocks=num_cpu_blocks))


def test_the_newest_goes_out_and_comes_back_before_anybody_new():
    swap = scheduler(num_blocks=4, num_cpu_blocks=4)
    for name in "ab":
        swap.submit(request(name, 8, 5))
    step(swap)
    swap.submit(request("new", 1, 1))
    plan = step(swap)  # a needs a third block
    assert plan.swapped_out == (BlockCopy("b", device=(2, 3), host=(0, 1)),) and plan.preempted == ("b",)
    assert swap.requests["b"].state is RequestState.PREEMPTED and swap.requests["b"].num_computed_tokens == 8
    assert dict(plan.num_tokens) == {"a": 1}
    order = [plan := step(swap) for _ in range(4)]
    assert order[-1].swapped_in[0].request_id == "b" and order[-1].swapped_in[0].host == (0, 1)
    assert list(order[-1].num_tokens) == ["b", "new"] and order[-1].num_tokens["b"] == 1
    assert all("new" not in plan.num_tokens for plan in order[:-1])


def test_runs_join_what_is_consecutive_on_both_sides():
    copy = BlockCopy("a", device=(5, 6, 7, 2, 3, 9), host=(0, 1, 2, 3, 5, 6))
    assert list(copy.runs()) == [
        (slice(5, 8), slice(0, 3)), (slice(2, 3), slice(3, 4)), (slice(3, 4), slice(5, 6)), (slice(9, 10), slice(6, 7)),
    ]  # fmt: skip


def test_priority_and_swap_contradict_each_other():
    with pytest.raises(ConfigError, match="swap needs 'fcfs'"):
        Swap(SchedulerConfig(policy="priority"), CacheConfig(4, num_cpu_blocks=4))


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=8),
    st.integers(6, 12),
    st.integers(0, 8),
    st.integers(8, 20),
)
def test_every_request_ends_with_its_tokens_and_every_block_is_back(sizes, num_blocks, num_cpu_blocks, budget):
    swap = scheduler(num_blocks, num_cpu_blocks, budget=budget)
    requests = [request(str(i), prompt, max_tokens) for i, (prompt, max_tokens) in enumerate(sizes)]
    for each in requests:
        swap.submit(each)
    out = back = 0
    while swap.has_unfinished:
        plan = step(swap)
        assert not (plan.swapped_out and plan.swapped_in) and plan.total_tokens <= budget
        for copy in (*plan.swapped_out, *plan.swapped_in):
            assert len(copy.device) == len(copy.host) == len(set(copy.device)) == len(set(copy.host)) > 0
            covered = [block for device, host in copy.runs() for block in zip(range(99)[device], range(99)[host])]
            assert covered == list(zip(copy.device, copy.host))
        out += sum(len(copy.host) for copy in plan.swapped_out)
        back += sum(len(copy.host) for copy in plan.swapped_in)
    assert out == back and swap.pool.num_used == 0
    assert swap.host is None or swap.host.num_used == 0
    assert [len(r.output_token_ids) for r in requests] == [m for _, m in sizes]
