"""What PyTorch's sanitizer can't see, and the model does: memory used again, overlapping views, the host."""

import pytest
from torch.cuda._sanitizer import EventHandler

from lab.streams.programs import find
from lab.streams.races import Kind
from lab.streams.verdict import examine
from tests.streams.oracles import first_by_sanitizer
from tests.streams.random_programs import NUMEL, Call, perform

HALF = NUMEL // 2


def whole(name: str) -> tuple[tuple[str, int, int], ...]:
    return ((name, 0, NUMEL),)


def both(calls: list[Call]) -> tuple[bool, set[Kind]]:
    """Whether the sanitizer finds anything, and what the model finds."""
    rt = perform(calls)
    return first_by_sanitizer(calls, rt) is not None, {hazard.kind for hazard in rt.trace.hazards}


def test_a_plain_race_both_see():
    calls = [
        Call("empty", "a", tensor="x"),
        Call("kernel", "a", writes=whole("x")),
        Call("kernel", "b", reads=whole("x")),
    ]
    assert both(calls) == (True, {Kind.READ_AFTER_WRITE})


def test_it_forgets_a_tensor_when_it_is_freed():
    calls = [
        Call("empty", "a", tensor="x"),
        Call("kernel", "b", reads=whole("x")),
        Call("free", tensor="x"),
        Call("empty", "a", tensor="z"),
        Call("kernel", "a", writes=whole("z")),
    ]
    places = [tenancy.start for tenancy in perform(calls).trace.tenancies]
    assert places[0] == places[1]
    assert both(calls) == (False, {Kind.FREED_EARLY, Kind.USE_AFTER_FREE})


@pytest.mark.parametrize(("start", "seen"), [(0, True), (HALF - 1, False)])
def test_it_knows_a_view_by_its_first_byte_alone(start, seen):
    calls = [
        Call("empty", "a", tensor="x"),
        Call("kernel", "a", writes=(("x", 0, HALF),)),
        Call("kernel", "b", writes=(("x", start, NUMEL),)),
    ]
    assert both(calls) == (seen, {Kind.WRITE_AFTER_WRITE})


def test_the_host_is_no_stream_for_it():
    """It is told of kernels on streams, of events, of allocations and of waits: nothing says that the host reads."""
    handlers = {name for name in dir(EventHandler) if name.startswith("_handle_")}
    assert handlers == {
        f"_handle_{what}"
        for what in (
            "device_synchronization", "event_creation", "event_deletion", "event_record", "event_synchronization",
            "event_wait", "kernel_launch", "memory_allocation", "memory_deallocation", "stream_creation",
            "stream_synchronization",
        )
    }  # fmt: skip
    for program, kind in (("d2h_read", Kind.READ_AFTER_WRITE), ("staging_reuse", Kind.WRITE_AFTER_READ)):
        hazards = examine(find(program).variant("broken").run).hazards
        assert [(hazard.kind, hazard.second.stream) for hazard in hazards] == [(kind, "host")]
