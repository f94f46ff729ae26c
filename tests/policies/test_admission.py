"""What each rule of admission is known for, on loads small enough to check by hand."""

import math

import pytest

from lab.core import CacheConfig, SchedulerConfig, WaitReason
from lab.policies import POLICIES, ForecastRatio, LookAhead, Peak, Reserve, ShortestFirst
from lab.policies.forecast import DECAY, INIT_RATIO, MAX_EXPECTED_TOKENS, MIN_RATIO, outstanding
from lab.policies.prefill_first import decodes
from lab.policies.shortest_first import ShortestQueue
from tests.policies.by_hand import request, run_step, step


def admitted_at_once(policy: str, num_blocks: int) -> list[str]:
    """Four requests of 8 + 9 tokens (2 blocks of 4 at first, 4 at the end), all that are admitted in the first step."""
    scheduler = POLICIES[policy](SchedulerConfig(100, 8), CacheConfig(num_blocks, 4))
    for name in "abcd":
        scheduler.submit(request(name, 8, 9))
    run_step(scheduler)
    return [r.request_id for r in scheduler.running]


def test_vllm_admits_what_is_known_and_reserve_what_will_be():
    assert admitted_at_once("vllm", 8) == ["a", "b", "c", "d"]
    assert admitted_at_once("reserve", 8) == ["a", "b"]
    assert admitted_at_once("reserve", 16) == ["a", "b", "c", "d"]


def test_first_chunk_looks_no_further_than_the_step():
    for policy, names in (("vllm", ["a"]), ("first-chunk", ["a", "b"])):
        scheduler = POLICIES[policy](SchedulerConfig(8, 4), CacheConfig(12, 1))
        scheduler.submit(request("a", 4, 8))
        run_step(scheduler)
        scheduler.submit(request("b", 10, 1))
        run_step(scheduler)
        assert [r.request_id for r in scheduler.running] == names


def test_the_peak_is_lightllms_formula():
    """Left 8, 4, 0 and held 2, 3, 4: one holds 10 at its end, two hold 2 + 3 + 2 x 4, three 2 + 3 + 4."""
    requests = [request("c", 4, 1), request("a", 2, 9), request("b", 3, 5)]
    assert Peak(SchedulerConfig(100, 8), CacheConfig(100, 1))._peak(requests) == 13
    assert Peak(SchedulerConfig(100, 8), CacheConfig(100, 4))._peak(requests) == 2 + 3 + 3 + 3 + 2 * 4  # 3 may be empty


@pytest.mark.parametrize("policy, num_running", [(Reserve, 1), (Peak, 2), (LookAhead, 2)])
def test_who_ends_in_time_is_room_for_the_next_but_for_the_worst_case(policy, num_running):
    """`old` ends after 2 more steps, so its 14 slots are free again long before `new` needs its 14."""
    scheduler = policy(SchedulerConfig(100, 8), CacheConfig(20, 1))
    scheduler.submit(request("old", 12, 3))
    run_step(scheduler)
    scheduler.submit(request("new", 2, 13))
    run_step(scheduler)
    assert len(scheduler.running) == num_running


def test_the_forecast_counts_a_share_of_what_is_running_and_all_of_what_comes():
    assert (INIT_RATIO - DECAY) * 40 == pytest.approx(27.96, abs=0.01)
    for max_tokens, reasons in ((21, {}), (22, {"new": WaitReason.BLOCKS})):
        scheduler = ForecastRatio(SchedulerConfig(100, 8), CacheConfig(64, 1))
        scheduler.submit(request("old", 4, 41))
        run_step(scheduler)
        scheduler.submit(request("new", 10, max_tokens))
        run_step(scheduler)  # `old` holds 5 and is expected to add 27.96 of 40: 31.04 are left for 10 + max_tokens
        assert scheduler.waiting_reasons() == reasons


def test_the_forecast_counts_all_of_what_was_admitted_in_the_same_step():
    for max_tokens, reasons in ((35, {}), (36, {"b": WaitReason.BLOCKS})):
        scheduler = ForecastRatio(SchedulerConfig(100, 8), CacheConfig(64, 1))
        scheduler.submit(request("a", 4, 20))
        scheduler.submit(request("b", 4, max_tokens))
        run_step(scheduler)  # `a` holds 4 and may add 20: below 60 must be what is left for 4 + max_tokens + 20
        assert scheduler.waiting_reasons() == reasons
    assert outstanding(request("long", 1, 5000)) == MAX_EXPECTED_TOKENS


def test_the_ratio_falls_while_all_goes_well_and_jumps_to_what_was_used():
    scheduler = ForecastRatio(SchedulerConfig(100, 8), CacheConfig(800, 1))
    scheduler.submit(request("a", 4, 790))
    for _ in range(700):
        run_step(scheduler)
    assert scheduler.ratio == pytest.approx(MIN_RATIO)
    scheduler = ForecastRatio(SchedulerConfig(100, 8), CacheConfig(1100, 1))
    for name in "ab":
        scheduler.submit(request(name, 5, 600))
        run_step(scheduler)  # b fits: 605 beside 6 held and 0.7 of 599; but both to the end need 1,208
    while scheduler.running[-1].request_id == "b":
        run_step(scheduler)
    used = scheduler.running[0].num_tokens - 5 - 1  # before the token of this step
    assert scheduler.ratio == pytest.approx((used + 20) / (600 + 1))


def test_static_batching_lets_nobody_in_until_the_last_one_ends():
    scheduler = POLICIES["static"](SchedulerConfig(8, 3), CacheConfig(100, 4))
    for name, max_tokens in (("a", 2), ("b", 6), ("c", 2), ("late", 1)):
        scheduler.submit(request(name, 8, max_tokens))
    plans = [run_step(scheduler) for _ in range(9)]
    assert plans[:3] == [{"a": 8}, {"b": 8}, {"c": 8}]  # collected: a prompt a step, no decode between
    assert plans[3:] == [{"a": 1, "b": 1, "c": 1}, *4 * [{"b": 1}], {"late": 8}]


@pytest.mark.parametrize("max_skip", [math.inf, 50])
def test_the_preempted_is_the_oldest_however_long_it_is(max_skip):
    queue = ShortestQueue(max_skip)
    short, long = (request(name, n, 1) for name, n in (("short", 1), ("long", 9)))
    queue.push(short)
    queue.push_preempted(long)
    assert queue.pop() is long and queue.pop() is short


def test_pure_shortest_first_starves_a_long_request_and_ageing_ends_it():
    for max_skip, starts in ((math.inf, None), (50, 51)):
        scheduler = ShortestFirst(SchedulerConfig(8, 8), CacheConfig(100, 4), max_skip)
        scheduler.submit(request("long", 32, 1))
        started = None
        for number in range(1, 1001):
            for i in range(2):
                scheduler.submit(request(f"short-{number}-{i}", 4, 1, arrival=number))
            if "long" in run_step(scheduler):
                started = number
                break
        assert started == starts


def test_priority_goes_first_and_the_latest_of_the_least_important_is_preempted():
    scheduler = POLICIES["priority"](SchedulerConfig(8, 1), CacheConfig(100, 4))
    for name, priority in (("low", 5), ("high", 0)):
        scheduler.submit(request(name, 4, 2, priority=priority))
    assert list(run_step(scheduler)) == ["high"]
    for priorities, victim in (((0, 0), "b"), ((1, 0), "a")):  # 4 blocks hold both until one needs its third
        scheduler = POLICIES["priority"](SchedulerConfig(8, 4), CacheConfig(4, 4))
        for i, (name, priority) in enumerate(zip("ab", priorities)):
            scheduler.submit(request(name, 4, 9, arrival=i, priority=priority))
        preempted = set()
        while scheduler.has_unfinished:
            preempted |= set(step(scheduler).preempted)
        assert preempted == {victim}


def test_what_decodes_is_told_from_what_is_still_in_its_prompt():
    one = request("one", 1, 3)
    assert not decodes(one)
    one.num_computed_tokens = 1
    one.append_output(0)
    assert decodes(one)
