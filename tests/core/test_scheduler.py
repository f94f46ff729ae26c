"""Single rules of the scheduler, each by a load small enough to check by hand."""

from dataclasses import FrozenInstanceError, fields

import pytest

from lab.core import (
    CacheConfig,
    ConfigError,
    FinishReason,
    Request,
    RequestRejected,
    SamplingParams,
    Scheduler,
    SchedulerConfig,
    WaitReason,
)


def request(name: str, prompt: int, max_tokens: int = 1, **fields) -> Request:
    return Request(name, range(prompt), SamplingParams(max_tokens), **fields)


def scheduler(num_blocks=100, block_size=4, *, budget=64, seqs=8, watermark=0, **config) -> Scheduler:
    return Scheduler(SchedulerConfig(budget, seqs, **config), CacheConfig(num_blocks, block_size, watermark))


def run_step(s: Scheduler, token: int = 0) -> dict[str, int]:
    plan = s.schedule()
    s.update(plan, dict.fromkeys(plan.num_tokens, token))
    return dict(plan.num_tokens)


def test_a_prompt_of_13_in_chunks_of_5_is_5_5_3_and_yields_its_token_at_the_end():
    s = scheduler(budget=5, seqs=1)
    r = request("a", 13, 2)
    s.submit(r)
    outputs = []
    plans = []
    for _ in range(4):
        plans.append(run_step(s))
        outputs.append(len(r.output_token_ids))
    assert plans == [{"a": 5}, {"a": 5}, {"a": 3}, {"a": 1}]
    assert outputs == [0, 0, 1, 2]


def test_decodes_ride_along_with_a_long_prompt_in_one_budget():
    s = scheduler(num_blocks=200, budget=64)
    s.submit(request("a", 4, 50))
    s.submit(request("b", 4, 50))
    run_step(s)
    s.submit(request("long", 512, 1))
    assert [run_step(s) for _ in range(3)] == [{"a": 1, "b": 1, "long": 62}] * 3


def test_the_threshold_caps_a_chunk_only_in_company():
    s = scheduler(budget=64, long_prefill_token_threshold=10)
    s.submit(request("a", 100, 1))
    assert run_step(s) == {"a": 64}
    s.submit(request("b", 100, 1))
    assert run_step(s) == {"a": 10, "b": 10}


def test_the_newest_is_preempted_keeps_its_output_and_returns_first():
    s = scheduler(num_blocks=4, block_size=4)
    old, new, late = request("old", 8, 8), request("new", 4, 8), request("late", 4)
    for r in (old, new):
        s.submit(r)
    run_step(s)  # 2 + 1 blocks
    run_step(s)  # both need another: one is free, so the newest loses its own
    s.submit(late)
    assert new.num_preemptions == 1 and new.output_token_ids == [0] and new.num_computed_tokens == 0
    assert [r.request_id for r in s.waiting] == ["new", "late"]
    assert s.waiting_reasons() == {"new": WaitReason.POLICY, "late": WaitReason.BEHIND_HEAD}


def test_priority_preempts_the_least_important_and_gives_its_planned_tokens_back():
    s = scheduler(num_blocks=4, block_size=2, budget=5, seqs=3, policy="priority")
    s.submit(request("low", 2, 4, priority=5))
    run_step(s)  # low is admitted first, so it stands first in `running`
    s.submit(request("high", 4, 4, priority=0))
    assert run_step(s) == {"low": 1, "high": 4}
    plan = s.schedule()  # low is planned (1 token), then high needs a block: low gives way
    assert plan.preempted == ("low",) and dict(plan.num_tokens) == {"high": 1}


def test_what_a_victim_had_planned_goes_to_those_after_it_and_what_it_had_not_does_not():
    s = scheduler(num_blocks=7, block_size=2, budget=6, seqs=3, policy="priority", reserve_full_prompt=False)
    s.submit(request("low", 6, 4, priority=9))
    run_step(s)
    s.submit(request("high", 2, 4, arrival=1))
    s.submit(request("third", 12, priority=5, arrival=2))
    assert run_step(s) == {"low": 1, "high": 2, "third": 3}  # 4 + 1 + 2 blocks: none is free
    assert run_step(s) == {"high": 1, "third": 5}  # low had 1 of the 6, high took its block

    s = scheduler(num_blocks=8, block_size=2, budget=4, seqs=3, policy="priority", reserve_full_prompt=False)
    s.submit(request("high", 1, 9))
    s.submit(request("low", 4, 4, priority=9, arrival=1))
    assert run_step(s) == {"high": 1, "low": 3}
    s.submit(request("third", 12, priority=5, arrival=2))
    assert [run_step(s) for _ in range(3)] == [{"high": 1, "low": 1, "third": 2}] * 3  # 2 + 3 + 3 blocks
    assert run_step(s) == {"high": 1, "third": 3}  # low's turn had not come


def test_the_watermark_keeps_blocks_free_but_not_for_the_first():
    s = scheduler(num_blocks=10, block_size=1, watermark=3)
    s.submit(request("a", 8, 1))
    assert run_step(s) == {"a": 8}
    s.submit(request("b", 4, 2))
    s.submit(request("c", 4, 2))
    assert run_step(s) == {"b": 4}
    assert s.waiting_reasons() == {"c": WaitReason.BLOCKS}


def test_without_full_prompt_reservation_the_first_chunk_is_enough():
    for reserve, plan in ((True, {"a": 1}), (False, {"a": 1, "b": 7})):
        s = scheduler(num_blocks=12, block_size=1, budget=8, seqs=2, reserve_full_prompt=reserve)
        s.submit(request("a", 4, 8))
        run_step(s)
        s.submit(request("b", 10, 1))
        assert run_step(s) == plan


def test_without_chunking_a_prompt_waits_for_a_step_that_takes_it_whole():
    s = scheduler(budget=8, seqs=4, enable_chunked_prefill=False)
    s.submit(request("a", 5))
    s.submit(request("b", 5))
    assert run_step(s) == {"a": 5}
    assert s.waiting_reasons() == {"b": WaitReason.BUDGET}
    assert run_step(s) == {"b": 5}


def test_each_reason_to_wait_has_a_load_that_gives_it():
    s = scheduler(seqs=1)
    s.submit(request("a", 4, 4))
    s.submit(request("b", 4, 4))
    run_step(s)
    assert s.waiting_reasons() == {"b": WaitReason.MAX_SEQS}
    s = scheduler(budget=4, seqs=2)
    s.submit(request("a", 9, 1))
    s.submit(request("b", 4, 1))
    run_step(s)
    assert s.waiting_reasons() == {"b": WaitReason.BUDGET}
    assert s.abort("b") and s.waiting_reasons() == {}


def test_before_the_first_step_nobody_waits_for_a_reason():
    s = scheduler()
    s.submit(request("a", 4))
    assert s.waiting_reasons() == {}


def test_what_is_in_flight_is_not_planned_again():
    s = scheduler()
    s.submit(request("a", 4))
    assert dict(s.schedule().num_tokens) == {"a": 4}
    assert dict(s.schedule().num_tokens) == {}


def test_two_requests_that_hold_16_of_32_blocks_each_use_the_whole_pool():
    s = scheduler(num_blocks=32, block_size=4, budget=200)
    for name in "ab":
        s.submit(request(name, 64, 1))
    plan = s.schedule()
    assert s.pool.num_used == 32 and len(s.running) == 2
    s.update(plan, dict.fromkeys(plan.num_tokens, 0))
    assert s.pool.num_used == 0


def test_a_stop_token_ends_a_request():
    s = scheduler()
    r = Request("a", range(4), SamplingParams(9, stop_token_ids=frozenset({5})))
    s.submit(r)
    run_step(s, token=4)
    run_step(s, token=5)
    assert r.finish_reason is FinishReason.STOP and r.output_token_ids == [4, 5] and not s.has_unfinished


@pytest.mark.parametrize("when", ["waiting", "running", "in flight", "preempted"])
def test_abort_at_any_moment_frees_everything_and_harms_nobody(when):
    s = scheduler(num_blocks=4, block_size=4)
    victim, other = request("victim", 4, 8), request("other", 8, 8)
    s.submit(other)
    s.submit(victim)
    if when == "running":
        run_step(s)
    if when == "preempted":
        run_step(s), run_step(s)
        assert victim.num_preemptions == 1
    if when == "in flight":
        plan = s.schedule()
        assert s.abort("victim")
        s.update(plan, dict.fromkeys(plan.num_tokens, 0))
    else:
        assert s.abort("victim")
    assert not s.abort("victim") and victim.finish_reason is FinishReason.ABORT
    while s.has_unfinished:
        run_step(s)
    assert len(other.output_token_ids) == 8 and s.pool.num_free == 4


def test_what_can_never_fit_is_refused_at_submit_with_the_numbers():
    s = scheduler(num_blocks=8, block_size=4, budget=8)
    with pytest.raises(RequestRejected, match=r"33 .*32"):
        s.submit(request("a", 33, 1))
    with pytest.raises(RequestRejected, match=r"33 .*32"):
        s.submit(request("a", 32, 2))
    assert s.pool.num_free == 8 and not s.has_unfinished
    s.submit(request("a", 32, 1))
    with pytest.raises(RequestRejected, match="'a' is already here"):
        s.submit(request("a", 1))
    with pytest.raises(RequestRejected, match="empty prompt"):
        s.submit(request("b", 0))


def test_limits_of_length_are_named():
    s = scheduler(budget=8, max_model_len=13)
    with pytest.raises(RequestRejected, match=r"12 prompt tokens and max_tokens 2 make 14, above .* 13"):
        s.submit(request("a", 12, 2))
    s.submit(request("a", 12, 1))


@pytest.mark.parametrize("prompt, max_tokens", [(9, 1), (5, 5)])
def test_without_chunking_a_request_that_no_step_would_take_again_is_refused(prompt, max_tokens):
    """Preempted before its last token it knows all but that one, and they must be computed in one step."""
    s = scheduler(budget=8, enable_chunked_prefill=False)
    with pytest.raises(RequestRejected, match=rf"can come to 9 tokens .*{prompt} prompt.* a step takes 8; turn"):
        s.submit(request("a", prompt, max_tokens))
    s.submit(request("a", prompt - 1, max_tokens))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: SchedulerConfig(max_num_batched_tokens=0), "max_num_batched_tokens is 0"),
        (lambda: SchedulerConfig(max_num_batched_tokens=-3), "max_num_batched_tokens is -3"),
        (lambda: SchedulerConfig(max_num_seqs=0), "max_num_seqs is 0"),
        (lambda: SchedulerConfig(long_prefill_token_threshold=-1), "threshold is -1"),
        (lambda: SchedulerConfig(policy="lifo"), "'lifo'"),
        (lambda: SchedulerConfig(max_model_len=0), "max_model_len is 0"),
        (lambda: CacheConfig(0), "num_blocks is 0"),
        (lambda: CacheConfig(4, 0), "block_size is 0"),
        (lambda: CacheConfig(4, 4, -1), "watermark_blocks is -1"),
        (lambda: CacheConfig(True), "num_blocks is True; it must be an integer"),
        (
            lambda: CacheConfig(2**24 + 1),
            "num_blocks, num_cpu_blocks or block_size is 16777217; it must be at most 16777216",
        ),
        (lambda: CacheConfig(4, 2**70), "or block_size is 1180591620717411303424; it must be at most"),
        (lambda: CacheConfig(4, num_cpu_blocks=10**12), "or block_size is 1000000000000; it must be at most"),
        (lambda: SchedulerConfig(enable_chunked_prefill="no"), "enable_chunked_prefill is 'no'; it must be True or"),
        (lambda: SchedulerConfig(reserve_full_prompt=None), "reserve_full_prompt is None; it must be True or False"),
        (lambda: SamplingParams(0), "max_tokens is 0"),
        (lambda: SamplingParams(temperature=-1), "temperature is -1"),
        (lambda: SamplingParams(temperature=float("inf")), "temperature is inf"),
        (lambda: SamplingParams(temperature=float("nan")), "temperature is nan"),
        (lambda: SamplingParams(top_p=0), "top_p is 0"),
        (lambda: SamplingParams(top_p=1.5), "top_p is 1.5"),
        (lambda: SamplingParams(seed=-1), "seed is -1"),
        (lambda: SamplingParams(seed=2**32), "seed is 4294967296; it must be from 0 to 4294967295"),
        (lambda: SchedulerConfig.with_defaults(max_num_batched_tokens=0), "max_num_batched_tokens is 0"),
        (lambda: SchedulerConfig.with_defaults(max_num_seqs="8"), "max_num_seqs is '8'; it must be an integer"),
    ],
)
def test_a_bad_value_is_refused_by_name(make, message):
    with pytest.raises((ConfigError, RequestRejected), match=message):
        make()


def test_the_least_and_the_most_that_is_allowed():
    assert CacheConfig(1, 1, 0).num_tokens == SchedulerConfig(1, 1, max_model_len=1).max_model_len == 1
    assert SamplingParams(1, seed=2**32 - 1).max_tokens == 1


def test_defaults():
    assert SchedulerConfig() == SchedulerConfig(2048, 128, 0, True, True, "fcfs", None)
    assert CacheConfig(9) == CacheConfig(9, 16, 0)
    assert SamplingParams() == SamplingParams(16, 0.0, 1.0, 0, frozenset())  # greedy


def test_what_was_checked_cannot_be_changed():
    for checked in (CacheConfig(9), SchedulerConfig(), SamplingParams(), scheduler().schedule()):
        with pytest.raises(FrozenInstanceError):
            setattr(checked, fields(checked)[0].name, 0)


def test_which_of_the_three_numbers_must_be_larger():
    SchedulerConfig(8, 4, max_model_len=13)  # chunking on: the budget may be below the longest request
    SchedulerConfig(64, 4, max_model_len=13)
    SchedulerConfig(13, 4, enable_chunked_prefill=False, max_model_len=13)
    with pytest.raises(ConfigError, match=r"\(8\) is below max_model_len \(13\) with chunked prefill off"):
        SchedulerConfig(8, 4, enable_chunked_prefill=False, max_model_len=13)
    with pytest.raises(ConfigError, match=r"\(4\) is below max_num_seqs \(8\)"):
        SchedulerConfig(4, 8, max_model_len=13)


def test_a_missing_limit_follows_the_given_one():
    assert SchedulerConfig.with_defaults(max_num_batched_tokens=8).max_num_seqs == 8
    assert SchedulerConfig.with_defaults(max_num_batched_tokens=1).max_num_seqs == 1
    assert SchedulerConfig.with_defaults(max_num_seqs=4096).max_num_batched_tokens == 4096
    assert SchedulerConfig.with_defaults() == SchedulerConfig()
    with pytest.raises(ConfigError):
        SchedulerConfig.with_defaults(max_num_batched_tokens=4, max_num_seqs=8)


def test_retract_passes_over_what_was_aborted_meanwhile():
    scheduler = Scheduler(SchedulerConfig(8, 4), CacheConfig(8, 4))
    for name in ("a", "b"):
        scheduler.submit(Request(name, range(3)))
    plan = scheduler.schedule()
    scheduler.abort("a")
    scheduler.submit(Request("a", range(2)))
    scheduler.retract(plan)
    assert {name: request.num_computed_tokens for name, request in scheduler.requests.items()} == {"a": 0, "b": 0}


def test_a_request_is_used_once():
    scheduler = Scheduler(SchedulerConfig(8, 4), CacheConfig(8, 4))
    request = Request("a", range(3))
    scheduler.submit(request)
    scheduler.abort("a")
    with pytest.raises(RequestRejected, match="finished already"):
        scheduler.submit(request)


@pytest.mark.parametrize("values", [{"max_tokens": 1.5}, {"max_tokens": float("nan")}, {"seed": None}, {"top_p": "1"}])
def test_sampling_params_are_numbers(values):
    with pytest.raises(RequestRejected, match="must be a number"):
        SamplingParams(**values)


def test_limits_are_integers():
    with pytest.raises(ConfigError, match="max_num_batched_tokens is 8.5; it must be an integer"):
        SchedulerConfig(8.5, 4)


def test_a_policy_may_let_anybody_in_and_the_pool_still_says_no():
    class Lax(Scheduler):
        def _why_wait(self, step, request, n):
            return None

    s = Lax(SchedulerConfig(64, 8), CacheConfig(4, 4))
    s.submit(request("a", 12, 2))
    s.submit(request("b", 8, 1))
    assert run_step(s) == {"a": 12}
    assert s.waiting_reasons() == {"b": WaitReason.BLOCKS} and s.pool.table("b") == []
