"""What must hold for every policy and every load; hypothesis looks for a load that breaks it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import composite

from lab.core import CacheConfig, Request, RequestState, SamplingParams, Scheduler, SchedulerConfig
from lab.policies import POLICIES, FirstChunk, Reserve

MAX_STEPS = 20_000
FIRST_COME_FIRST_SERVED = [name for name in POLICIES if name not in ("priority", "shortest-first")]


@composite
def loads(draw, slots: int) -> list[tuple[int, Request]]:
    """(step of arrival, request): each fits the pool alone, and no two arrive at one moment."""
    requests = []
    for index in range(draw(st.integers(1, 8))):
        prompt = draw(st.integers(1, slots))
        sampling = SamplingParams(max_tokens=draw(st.integers(1, slots - prompt + 1)))
        step, priority = draw(st.integers(0, 12)), draw(st.integers(0, 2))
        requests.append((step, Request(f"r{index}", range(prompt), sampling, priority, step + index / 10)))
    return sorted(requests, key=lambda item: item[0])


@composite
def limits(draw) -> tuple[SchedulerConfig, CacheConfig]:
    seqs = draw(st.integers(1, 5))
    config = SchedulerConfig(seqs + draw(st.integers(0, 20)), seqs, draw(st.sampled_from([0, 0, 3])))
    return config, CacheConfig(draw(st.integers(6, 20)), draw(st.sampled_from([1, 4])), draw(st.integers(0, 2)), 5)


def check(scheduler: Scheduler, plan) -> None:
    config, pool = scheduler.config, scheduler.pool
    assert plan.total_tokens <= config.max_num_batched_tokens and len(scheduler.running) <= config.max_num_seqs
    assert all(n > 0 for n in plan.num_tokens.values()) and not set(plan.num_tokens) & set(plan.preempted)
    assert plan.num_tokens or plan.preempted or not scheduler.has_unfinished, "a step for nothing"
    held = [block for name in scheduler.requests for block in pool.table(name)]
    assert len(held) == len(set(held)) == pool.num_used, "a block leaked or has two owners"
    for request in scheduler.running:
        assert len(pool.table(request.request_id)) == -(-request.num_computed_tokens // scheduler.cache.block_size)
    assert set(scheduler.waiting_reasons()) == {r.request_id for r in scheduler.waiting}, "one waits for no reason"


def run(scheduler: Scheduler, load: list[tuple[int, Request]]) -> list[str]:
    """Run the load to its end, checking each step; returns the ids in order of first admission."""
    pending, admitted = list(load), dict[str, None]()
    for step in range(MAX_STEPS):
        while pending and pending[0][0] <= step:
            scheduler.submit(pending.pop(0)[1])
        plan = scheduler.schedule()
        check(scheduler, plan)
        admitted |= dict.fromkeys(request.request_id for request in scheduler.running)
        scheduler.update(plan, dict.fromkeys(plan.num_tokens, 7))
        if not pending and not scheduler.has_unfinished:
            break
    assert scheduler.pool.num_used == 0
    for _, request in load:
        assert request.state is RequestState.FINISHED and len(request.output_token_ids) == request.sampling.max_tokens
    return list(admitted)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_load_ends_within_the_limits(policy, data):
    config, cache = data.draw(limits())
    load = data.draw(loads(cache.num_tokens))
    admitted = run(POLICIES[policy](config, cache), load)
    if policy in FIRST_COME_FIRST_SERVED:
        assert admitted == [request.request_id for _, request in load], "first come was not first served"
    if policy in ("reserve", "static"):
        assert not any(request.num_preemptions for _, request in load)


def test_the_checks_notice_a_budget_that_is_exceeded_a_leak_and_a_broken_promise():
    class TwiceTheBudget(Scheduler):
        def _fill(self, step):
            step.left *= 2
            return super()._fill(step)

    class Leak(Scheduler):
        def _finish(self, request, reason):
            super()._finish(request, reason)
            self.pool.grow("nobody", 1)

    class Forgetful(Reserve, FirstChunk):
        def _fits(self, step, request):
            return True

    load = [(0, Request(f"r{i}", range(8), SamplingParams(9), arrival=i / 10)) for i in range(4)]
    config, cache = SchedulerConfig(8, 4), CacheConfig(8, 4)
    with pytest.raises(AssertionError):
        run(TwiceTheBudget(config, cache), [load[0], load[1]])
    with pytest.raises(AssertionError, match="a block leaked"):
        run(Leak(config, cache), [load[2], load[3]])
    load = [(0, Request(f"r{i}", range(8), SamplingParams(9), arrival=i / 10)) for i in range(4)]
    run(Forgetful(config, cache), load)
    assert any(request.num_preemptions for _, request in load)
