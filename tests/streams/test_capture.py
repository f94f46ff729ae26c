"""Graph capture: what it notes, what it refuses, and what a replay does."""

import pytest

from lab.streams.model import ModelRuntime
from lab.streams.races import Kind
from lab.streams.runtime import CaptureError, ProgramError


@pytest.fixture
def rt() -> ModelRuntime:
    return ModelRuntime()


def test_nothing_runs_before_the_replay_and_all_of_it_in_each(rt):
    x = rt.full(4, 0, "x")
    with rt.capture() as graph:
        rt.add(x, x, 1)
        rt.wait_stream("main", on="side")
        rt.add(x, x, 1, on="side")
        rt.wait_stream("side", on="main")
    assert rt.mean(x) == 0
    for _ in range(3):
        rt.replay(graph)
    assert rt.mean(x) == 6
    assert not rt.hazards()


def test_a_replay_is_one_launch_and_keeps_to_its_stream(rt):
    x, y = rt.full(4, 0, "x"), rt.full(4, 0, "y")
    with rt.capture() as graph:
        for _ in range(10):
            rt.add(x, x, 1)
    rt.synchronize()
    before = rt.now
    rt.replay(graph, on="other")
    assert rt.now - before == rt.machine.launch_us
    rt.add(y, x, 1, on="other")
    assert rt.mean(y) == 11
    assert not rt.hazards()


def test_what_runs_beside_a_replay_races_with_it(rt):
    x = rt.full(4, 0, "x")
    with rt.capture() as graph:
        rt.fill(x, 1)
    rt.synchronize()
    rt.replay(graph)
    rt.fill(x, 2, on="side")
    assert [hazard.kind for hazard in rt.hazards()] == [Kind.WRITE_AFTER_WRITE]


def test_a_stream_outside_the_capture_goes_on(rt):
    x = rt.full(4, 0, "x", on="other")
    with rt.capture():
        rt.fill(x, 5, on="other")
        rt.wait(rt.record(on="other"), on="third")
    assert rt.mean(x) == 5


@pytest.mark.parametrize("depth", [1, 2])
def test_a_forked_stream_must_be_waited_for_directly_or_not(rt, depth):
    x = rt.full(4, 0, "x")
    streams = ["main", "side", "third"][: depth + 1]
    with rt.capture():
        for a, b in zip(streams, streams[1:]):
            rt.wait_stream(a, on=b)
        rt.fill(x, 1, on=streams[-1])
        for a, b in zip(streams[::-1], streams[-2::-1]):
            rt.wait_stream(a, on=b)
    with pytest.raises(CaptureError, match="unjoined: side joined, and main never waits for it"), rt.capture():
        rt.wait_stream("main", on="side")
        rt.wait_stream("side", on="main")
        rt.fill(x, 1, on="side")  # after the wait


def test_an_event_from_outside_is_refused_and_one_recorded_again_inside_is_not(rt):
    event = rt.record()
    with pytest.raises(CaptureError, match="isolation: main captures and waits for event"), rt.capture():
        rt.wait(event, on="main")
    with rt.capture():
        rt.record(event)
        rt.wait(event, on="main")


@pytest.mark.parametrize(
    "wait",
    [
        lambda rt, x, h: rt.synchronize(),
        lambda rt, x, h: rt.synchronize("other"),
        lambda rt, x, h: rt.query(rt.record()),
        lambda rt, x, h: rt.copy(x, h),
        lambda rt, x, h: rt.copy(h, x),
    ],
)
def test_the_host_can_wait_for_nothing(rt, wait):
    x, h = rt.full(4, 0, "x"), rt.full(4, 0, "h", place="pageable")
    with pytest.raises(CaptureError, match="unsupported: .* while main captures"), rt.capture():
        wait(rt, x, h)
    rt.synchronize()  # the capture is over


def test_one_capture_at_a_time(rt):
    with pytest.raises(ProgramError, match="side can't begin a capture: main captures already"), rt.capture():
        with rt.capture(on="side"):
            pass
