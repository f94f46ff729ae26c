"""Timing: what is refused, what is kept apart, which clock."""

import time
from types import SimpleNamespace

import pytest
import torch

from lab.core.errors import LabError
from lab.measure.timing import Timing, measure, measure_interleaved

CPU = torch.device("cpu")


@pytest.mark.parametrize("warmup", [0, -1])
def test_no_measurement_without_warmup(warmup: int) -> None:
    with pytest.raises(LabError, match=f"warmup is {warmup}"):
        measure(lambda: None, CPU, warmup=warmup)


def test_other_measurements_that_say_nothing() -> None:
    with pytest.raises(LabError, match="repeats is 0"):
        measure(lambda: None, CPU, repeats=0)
    with pytest.raises(LabError, match="'sundial' is unknown; there is wall, process"):
        measure(lambda: None, CPU, clock="sundial")
    with pytest.raises(LabError, match="would time the launch"):
        measure(lambda: None, torch.device("cuda", 0), clock="process")
    with pytest.raises(LabError, match="at least 1 sample"):
        Timing(())


def test_the_first_call_is_in_the_warmup_only() -> None:
    calls: list[float] = []

    def slow_at_first() -> None:
        calls.append(0.0)
        time.sleep(0.05 if len(calls) <= 2 else 0)

    timing = measure(slow_at_first, CPU, warmup=2, repeats=3)
    assert len(calls) == 5
    assert len(timing.warmup) == 2 and min(timing.warmup) >= 50
    assert len(timing.samples) == 3 and timing.min < 25
    assert timing.clock == "wall"


def test_median_and_spread() -> None:
    timing = Timing((3.0, 1.0, 10.0, 2.0))
    assert (timing.median, timing.min, timing.max, timing.spread) == (2.5, 1.0, 10.0, 9.0)
    assert Timing((7.0,)).median == 7.0


def test_process_time_does_not_see_waiting() -> None:
    waiting = measure(lambda: time.sleep(0.03), CPU, repeats=2, clock="process")
    assert waiting.max < 15 and waiting.clock == "process"
    assert measure(lambda: time.sleep(0.03), CPU, repeats=1).min >= 30


def test_interleaved() -> None:
    order: list[str] = []
    fns = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    timings = measure_interleaved(fns, CPU, warmup=1, repeats=2)
    assert "".join(order) == "ababab"
    assert {name: len(timing.samples) for name, timing in timings.items()} == {"a": 2, "b": 2}


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU: events around the call, the device waited for before the first and after the second."""
    log: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None: ...

        def query(self) -> bool:
            return log[-1] == "wait"

        def elapsed_time(self, end: "Event") -> float:
            return 4.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    stream = SimpleNamespace(record_event=lambda event: log.append("event") or event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: log.append("wait"))
    timing = measure(lambda: log.append("launch"), torch.device("cuda", 0), warmup=1, repeats=1)
    assert log == ["wait", "event", "launch", "event", "wait"] * 2
    assert (timing.samples, timing.clock) == ((4.0,), "cuda events")
