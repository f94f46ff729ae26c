"""Looking ahead: in blocks, and with prompts that take steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.core import CacheConfig, SchedulerConfig
from lab.core.plan import PlanDraft
from lab.policies import LookAhead, Peak
from lab.sim import LinearCost, simulate
from tests.policies.by_hand import request, run_step


def peak(requests, block_size=1, budget=100, left=100) -> int:
    scheduler = LookAhead(SchedulerConfig(budget, 4), CacheConfig(100, block_size))
    return scheduler._peak(PlanDraft(left=left, cap=budget), requests)


def test_the_peak_by_hand():
    """Slots at the end 10, 7 and 4; with c gone after step 0, a and b hold 2 + 3 and 4 more each when b ends."""
    requests = [request("c", 4, 1), request("a", 2, 9), request("b", 3, 5)]
    assert peak(requests) == 2 + 3 + 2 * 4
    assert peak(requests, block_size=4) == 4  # b's 7 and a's 6 tokens; lightllm's rule has 19 slots, 5 blocks


def test_a_prompt_in_chunks_decodes_later():
    """In one step: `long` ends in step 3 with 15 slots, beside 5. In chunks of 4 from the next step on, it decodes from
    step 3 on and has 13 when `short` ends in step 4 with 6.
    """
    requests = [request("short", 2, 5), request("long", 12, 4)]
    assert peak(requests) == 15 + 5
    assert peak(requests, budget=4, left=2) == 13 + 6


def test_it_admits_in_blocks_what_the_peak_in_tokens_does_not():
    """Both end with full blocks, 2 of 4 each; counted as if blocks were nearly empty that is 22 slots of 16."""
    for policy, num_running in ((Peak, 1), (LookAhead, 2)):
        scheduler = policy(SchedulerConfig(100, 8), CacheConfig(4, 4))
        for name in "ab":
            scheduler.submit(request(name, 5, 4))
        run_step(scheduler)
        assert len(scheduler.running) == num_running


@pytest.mark.parametrize("block_size", [1, 4])
@given(shapes=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=8))
def test_where_prompts_take_one_step_nobody_is_preempted(block_size, shapes):
    """The forecast is then exact, and what it admits has room to its end."""
    requests = [request(str(i), prompt, max_tokens) for i, (prompt, max_tokens) in enumerate(shapes)]
    scheduler = LookAhead(SchedulerConfig(1000, 8), CacheConfig(24 // block_size, block_size))
    trace = simulate(requests, scheduler, LinearCost())
    assert not trace.refused and not any(step.preempted for step in trace.steps)
