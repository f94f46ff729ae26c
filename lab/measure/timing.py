"""How long something takes: CUDA events on a GPU, a clock on the CPU; warm-up kept apart; median and spread.

Two clocks on the CPU. "wall" is what a user waits. "process" is the processor time of the process: on a machine that is
doing other work too it moves by some 15 % where wall time moves by a factor of 2 to 30, because every barrier of a
multi-threaded operation waits for a thread that was put aside. Compare two programs with `measure_interleaved`, on one
thread if the machine is busy, and quote the ratio.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from lab.core.errors import LabError
from lab.model.device import Timer, synchronize

CPU_CLOCKS = {"wall": time.perf_counter_ns, "process": time.process_time_ns}


class TimingError(LabError, ValueError):
    """A measurement that would say nothing: no warm-up, no sample, or a clock the device does not have."""


@dataclass(frozen=True)
class Timing:
    """Times of one piece of work, in milliseconds, in the order they were taken."""

    samples: tuple[float, ...]
    warmup: tuple[float, ...] = ()  # the first calls: compilation, caches and allocations are in them and nowhere else
    clock: str = "wall"  # "cuda events", "wall" or "process"

    def __post_init__(self) -> None:
        if not self.samples:
            raise TimingError("a timing needs at least 1 sample; got 0")

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def min(self) -> float:
        return min(self.samples)

    @property
    def max(self) -> float:
        return max(self.samples)

    @property
    def spread(self) -> float:
        """Maximum less minimum: a difference between two medians that is smaller than this says nothing."""
        return self.max - self.min


def measure(
    fn: Callable[[], object], device: torch.device, *, warmup: int = 1, repeats: int = 5, clock: str = "wall"
) -> Timing:
    """Call `fn` `warmup` + `repeats` times and time each call to its end on the device.

    Raises TimingError for warmup < 1, repeats < 1 or an unknown clock; `clock` is for the CPU, a GPU has events.
    """
    return measure_interleaved({"fn": fn}, device, warmup=warmup, repeats=repeats, clock=clock)["fn"]


def measure_interleaved(
    fns: Mapping[str, Callable[[], object]],
    device: torch.device,
    *,
    warmup: int = 1,
    repeats: int = 5,
    clock: str = "wall",
) -> dict[str, Timing]:
    """As `measure`, for several: one call of each in turn, so that whatever else the machine does falls on them all."""
    if warmup < 1:
        raise TimingError(f"warmup is {warmup}; the first call is never like the others, so ask for at least 1")
    if repeats < 1:
        raise TimingError(f"repeats is {repeats}; ask for at least 1")
    if clock not in CPU_CLOCKS:
        raise TimingError(f"clock {clock!r} is unknown; there is {', '.join(CPU_CLOCKS)}")
    if device.type != "cpu" and clock != "wall":
        raise TimingError(f"clock {clock!r} is of the CPU and would time the launch; on {device} leave it out")
    timer = Timer(device, CPU_CLOCKS[clock])
    samples: dict[str, list[float]] = {name: [] for name in fns}
    for _ in range(warmup + repeats):
        for name, fn in fns.items():
            samples[name].append(_sample(fn, timer, device))
    used = clock if device.type == "cpu" else "cuda events"
    return {name: Timing(tuple(ms[warmup:]), tuple(ms[:warmup]), used) for name, ms in samples.items()}


def _sample(fn: Callable[[], object], timer: Timer, device: torch.device) -> float:
    synchronize(device)  # what was launched before is not ours to time
    timer.start()
    fn()
    timer.stop()
    synchronize(device)
    return timer.elapsed_ms()
