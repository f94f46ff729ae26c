"""Hazards one by one: which pair is told, as what, and that one missing edge isn't told twice."""

import pytest

from lab.streams.model import ModelRuntime
from lab.streams.races import Kind


@pytest.fixture
def rt() -> ModelRuntime:
    return ModelRuntime()


def told(rt: ModelRuntime) -> list[tuple[Kind, str, str]]:
    return [(hazard.kind, hazard.first.label, hazard.second.label) for hazard in rt.hazards()]


def test_an_event_recorded_again_is_waited_for_as_it_was_when_the_wait_was_enqueued(rt):
    x, y = rt.full(4, 0, "x"), rt.full(4, 0, "y")
    event = rt.record()
    rt.wait(event, on="side")
    rt.fill(x, 1)
    rt.record(event)
    rt.add(y, x, 1, on="side")
    assert told(rt) == [(Kind.READ_AFTER_WRITE, "x = 1", "y = x + 1")]


def test_what_a_stream_waited_for_is_passed_on(rt):
    x, y = rt.full(4, 0, "x"), rt.full(4, 0, "y")
    rt.wait_stream("main", on="second")
    rt.wait_stream("second", on="third")
    rt.add(y, x, 1, on="third")
    assert told(rt) == []


def test_work_on_a_stream_that_the_host_waited_for_is_over_for_all(rt):
    x = rt.full(4, 0, "x")
    rt.fill(x, 1, on="main")
    rt.synchronize("main")
    rt.fill(x, 2, on="side")
    rt.synchronize(rt.record(on="side"))
    rt.fill(x, 3, on="third")
    assert told(rt) == []


def test_a_query_that_says_yes_orders_as_a_wait_does_and_one_that_says_no_does_not(rt):
    x = rt.full(4, 0, "x")
    rt.fill(x, 1, us=100)
    event = rt.record()
    assert not rt.query(event)
    rt.fill(x, 2, on="side")
    assert told(rt) == [(Kind.WRITE_AFTER_WRITE, "x = 1", "x = 2")]
    rt.synchronize()
    rt.fill(x, 3, us=1)
    event = rt.record()
    rt.work(50)
    assert rt.query(event)
    rt.fill(x, 4, on="side")
    assert len(told(rt)) == 1


def test_two_readers_are_no_race(rt):
    x, y, z = (rt.full(4, 0, name) for name in "xyz")
    rt.synchronize()
    rt.add(y, x, 1, on="a")
    rt.add(z, x, 1, on="b")
    assert told(rt) == []


def test_a_pair_is_told_once_and_as_what_is_read(rt):
    x = rt.full(4, 0, "x")
    rt.synchronize()
    rt.add(x, x, 1)
    rt.add(x, x, 2, on="side")
    assert told(rt) == [(Kind.READ_AFTER_WRITE, "x = x + 1", "x = x + 2")]


def test_only_the_last_write_is_told_of_several_in_order(rt):
    x, y = rt.full(128, 0, "x"), rt.full(128, 0, "y")
    rt.synchronize()
    rt.fill(x.view(0, 64), 1)
    rt.fill(x, 2)
    rt.add(y, x, 1, on="side")
    assert told(rt) == [(Kind.READ_AFTER_WRITE, "x = 2", "y = x + 1")]


def test_and_what_it_did_not_cover_is_told_too(rt):
    x, y = rt.full(128, 0, "x"), rt.full(128, 0, "y")
    rt.synchronize()
    rt.fill(x, 1)
    rt.fill(x.view(32, 64), 2)
    rt.add(y.view(0, 32), x.view(32, 64), 1, on="side")
    rt.add(y.view(32, 64), x.view(0, 32), 1, on="side")
    rt.add(y.view(64, 96), x.view(64, 96), 1, on="side")
    kinds = [(hazard.first.label, hazard.second_tensor) for hazard in rt.hazards()]
    assert kinds == [("x[32:64] = 2", "x"), ("x = 1", "x"), ("x = 1", "x")]


def test_a_first_use_elsewhere_must_come_after_the_allocation_and_all_that_its_stream_had_waited_for(rt):
    rt.spin(100, on="other")
    rt.wait_stream("other", on="main")
    x = rt.empty(4, "x")
    rt.fill(x, 1, on="side")
    assert told(rt) == [(Kind.TOUCHED_EARLY, "allocate x", "x = 1")]


def test_and_an_event_recorded_since_the_last_work_is_as_good(rt):
    rt.spin(100)
    event = rt.record()
    x = rt.empty(4, "x")
    rt.wait(event, on="side")
    rt.fill(x, 1, on="side")
    assert told(rt) == []


def test_an_allocation_is_not_told_beside_the_race_that_the_same_edge_mends(rt):
    rt.spin(100)
    x, y = rt.full(4, 1, "x"), rt.empty(4, "y", on="side")
    rt.add(y, x, 1, on="side")
    assert told(rt) == [(Kind.READ_AFTER_WRITE, "x = 1", "y = x + 1")]


def test_an_allocation_is_over_with_its_tensor(rt):
    rt.spin(100)
    rt.free(rt.empty(4, "x"))
    z = rt.empty(4, "z")
    rt.fill(z, 1, on="side")
    assert told(rt) == [(Kind.TOUCHED_EARLY, "allocate z", "z = 1")]


def test_the_latent_half_is_told_although_nothing_collides(rt):
    x, y = rt.full(4, 1, "x"), rt.full(4, 0, "y")
    rt.synchronize()
    rt.add(y, x, 1, on="side")
    rt.free(x)
    assert told(rt) == [(Kind.FREED_EARLY, "y = x + 1", "free x")]


def test_pinned_memory_is_kept_for_the_copies_that_are_queued(rt):
    x, ids = rt.full(4, 0, "x"), rt.full(4, 1, "ids", place="pinned")
    rt.spin(400)
    rt.copy(x, ids)
    rt.free(ids)
    rt.full(4, 7, "next", place="pinned")
    assert rt.mean(x) == 1 and told(rt) == []
    rt.free(rt.full(4, 7, "last", place="pinned"))  # nothing queued: its bytes are free at once
    place = rt.trace.tenancies[-1].start
    rt.full(4, 8, "again", place="pinned")
    assert rt.trace.tenancies[-1].start == place


def test_a_pageable_source_is_free_when_the_call_returns_and_the_target_is_not_written_yet(rt):
    x, y, ids = rt.full(4, 0, "x"), rt.full(4, 0, "y"), rt.full(4, 1, "ids", place="pageable")
    rt.copy(x, ids)
    rt.write(ids, 7)
    assert told(rt) == []
    rt.add(y, x, 1, on="side")  # the host waited for the stream before the copy, not for the copy
    assert told(rt) == [(Kind.READ_AFTER_WRITE, "x <- ids", "y = x + 1")]
    assert rt.mean(x) == 1
