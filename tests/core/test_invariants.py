"""What must hold for every load, whatever the limits: hypothesis looks for one that breaks it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import composite

from lab.core import CacheConfig, FinishReason, Request, RequestState, SamplingParams, Scheduler, SchedulerConfig

MAX_STEPS = 20_000


@composite
def schedulers(draw) -> Scheduler:
    max_num_seqs = draw(st.integers(1, 6))
    config = SchedulerConfig(
        max_num_batched_tokens=max_num_seqs + draw(st.integers(0, 30)),
        max_num_seqs=max_num_seqs,
        long_prefill_token_threshold=draw(st.sampled_from([0, 1, 3, 8])),
        reserve_full_prompt=draw(st.booleans()),
        policy=draw(st.sampled_from(["fcfs", "priority"])),
    )
    cache = CacheConfig(draw(st.integers(8, 24)), draw(st.sampled_from([1, 4])), draw(st.integers(0, 4)))
    return Scheduler(config, cache)


@composite
def loads(draw, scheduler: Scheduler) -> list[tuple[int, Request]]:
    """(step of arrival, request): each fits the pool alone, and no two arrive at one moment, as on a real clock.

    With equal arrivals vLLM's choice of a victim can change sides for ever: see `PriorityQueue.victim`.
    """
    slots = scheduler.cache.num_tokens
    requests = []
    for index in range(draw(st.integers(1, 8))):
        prompt = draw(st.integers(1, slots))
        sampling = SamplingParams(max_tokens=draw(st.integers(1, slots - prompt + 1)))
        step = draw(st.integers(0, 10))
        priority = draw(st.integers(0, 2))
        requests.append((step, Request(f"r{index}", range(prompt), sampling, priority, step + index / 10)))
    return sorted(requests, key=lambda item: item[0])


def check_blocks(scheduler: Scheduler) -> None:
    """Every block is free or stands in one table, and each table holds exactly what its request needs."""
    tables = [scheduler.pool.table(r) for r in scheduler.requests]
    held = [block for table in tables for block in table]
    assert len(held) == len(set(held)), "a block has two owners"
    assert len(held) + scheduler.pool.num_free == scheduler.cache.num_blocks, "a block leaked"
    for request in scheduler.requests.values():
        need = -(-request.num_computed_tokens // scheduler.cache.block_size)
        assert len(scheduler.pool.table(request.request_id)) == need


def check_plan(scheduler: Scheduler, plan) -> None:
    assert all(n > 0 for n in plan.num_tokens.values()), "a planned 0"
    assert plan.total_tokens <= scheduler.config.max_num_batched_tokens
    assert len(scheduler.running) <= scheduler.config.max_num_seqs
    assert not set(plan.num_tokens) & set(plan.preempted)
    cap = scheduler.config.long_prefill_token_threshold
    if cap and len(scheduler.requests) > 1:
        assert max(plan.num_tokens.values(), default=0) <= cap


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_load_ends_within_the_limits(data):
    scheduler = data.draw(schedulers())
    pending = data.draw(loads(scheduler))
    aborts = {step: f"r{i}" for i, step in enumerate(data.draw(st.lists(st.integers(0, 30), max_size=3)))}
    submitted = [request for _, request in pending]
    first_admitted: list[Request] = []
    for step in range(MAX_STEPS):
        while pending and pending[0][0] <= step:
            scheduler.submit(pending.pop(0)[1])
        plan = scheduler.schedule()
        check_plan(scheduler, plan)
        check_blocks(scheduler)
        assert set(scheduler.waiting_reasons()) == {r.request_id for r in scheduler.waiting}
        first_admitted += [r for r in scheduler.running if r not in first_admitted]
        if step in aborts:  # while the model runs
            scheduler.abort(aborts[step])
            check_blocks(scheduler)
        scheduler.update(plan, dict.fromkeys(plan.num_tokens, 7))
        check_blocks(scheduler)
        if not pending and not scheduler.has_unfinished:
            break
    assert scheduler.pool.num_free == scheduler.cache.num_blocks
    for request in submitted:
        assert request.state is RequestState.FINISHED
        if request.finish_reason is FinishReason.LENGTH:
            assert len(request.output_token_ids) == request.sampling.max_tokens
        else:
            assert request.finish_reason is FinishReason.ABORT
    if scheduler.config.policy == "fcfs":
        order = [submitted.index(request) for request in first_admitted]
        assert order == sorted(order), "first come was not first served"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), min_size=1, max_size=6))
def test_without_pressure_nothing_is_preempted_and_nothing_computed_twice(shapes):
    scheduler = Scheduler(SchedulerConfig(32, 8), CacheConfig(num_blocks=100, block_size=4))
    for index, (prompt, max_tokens) in enumerate(shapes):
        scheduler.submit(Request(f"r{index}", range(prompt), SamplingParams(max_tokens)))
    computed = 0
    while scheduler.has_unfinished:
        plan = scheduler.schedule()
        assert not plan.preempted
        computed += plan.total_tokens
        scheduler.update(plan, dict.fromkeys(plan.num_tokens, 0))
    assert computed == sum(prompt + max_tokens - 1 for prompt, max_tokens in shapes)
