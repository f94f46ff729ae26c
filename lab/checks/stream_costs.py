"""What streams cost on a GPU: events, edges, copies and overlap, each with its method. Nothing here runs on the CPU.

Clocks move, so spins are calibrated on a warm device. Where the host's pace must not count, everything is enqueued
behind a gate: a spin on a third stream that all wait for. Fewer than 1,000 commands wait behind one, or launches would
block (vllm#29013). Medians of REPEATS after WARMUP; times without the profiler, counts with it.
"""

import statistics
import time
from collections.abc import Callable
from functools import cache

import torch

from lab.measure.records import Row
from lab.streams_torch.cuda import cycles_per_us

WARMUP, REPEATS = 3, 7
KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
CALLS = 100  # of one kind behind a gate
HOST_COPY_BYTES = 256 * MIB


def spin(us: float) -> None:
    """Keep the current stream busy."""
    torch.cuda._sleep(round(us * cycles_per_us()))


def gate(us: float, *streams: torch.cuda.Stream) -> torch.cuda.Event:
    """Let the streams wait until a third one has spun; returns the event, with its time, that opens them."""
    opened = torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(opener()):
        spin(us)
        opened.record()
    for stream in streams:
        stream.wait_event(opened)
    return opened


@cache
def opener() -> torch.cuda.Stream:
    return torch.cuda.Stream()


def mark(stream: torch.cuda.Stream) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream)
    return event


def median_us(sample: Callable[[], float]) -> float:
    """Median of what `sample` measures in microseconds; the device is idle before each."""
    samples = []
    for _ in range(WARMUP + REPEATS):
        torch.cuda.synchronize()
        samples.append(sample())
    torch.cuda.synchronize()
    return statistics.median(samples[WARMUP:])


def between(begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
    """Microseconds from one to the other, once both have passed."""
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def floats(nbytes: int, device: torch.device) -> torch.Tensor:
    return torch.ones(nbytes // 4, device=device)


def unit_costs(device: torch.device) -> list[Row]:
    """What the calls cost the host while the device is busy, and what copies of N bytes cost the device."""
    a, b, x = torch.cuda.Stream(), torch.cuda.Stream(), floats(4 * KIB, device)
    event = a.record_event()
    calls: dict[str, Callable[[], object]] = {
        "x.add_(1)": lambda: x.add_(1),
        "event.record()": lambda: event.record(a),
        "Event().record()": lambda: torch.cuda.Event().record(a),
        "stream.wait_event(event)": lambda: b.wait_event(event),
        "stream.wait_stream(other)": lambda: b.wait_stream(a),
        "event.query()": event.query,
    }
    rows: list[Row] = [host_row(what, call) for what, call in calls.items()]
    rows.append(host_row("synchronize() of an idle device", torch.cuda.synchronize, is_idle=True))
    for place in ("pinned", "pageable"):
        source = torch.ones(HOST_COPY_BYTES // 4, pin_memory=place == "pinned")
        target = floats(HOST_COPY_BYTES, device)
        for non_blocking in (True, False):
            what = f"copy_ from {place} memory, non_blocking={non_blocking}"
            us = median_us(lambda: host_us(lambda: target.copy_(source, non_blocking=non_blocking)))  # noqa: B023
            rows.append(cost_row(what, HOST_COPY_BYTES, host_us=us))
    return rows + [copy_row(nbytes, device) for nbytes in SIZES]


def cost_row(what: str, nbytes: int = 0, host_us: float | None = None, device_us: float | None = None) -> Row:
    gbps = 2 * nbytes / device_us / 1e3 if device_us else None
    return {"what": what, "bytes": nbytes, "host_us": host_us, "device_us": device_us, "gb_per_s": gbps}


def host_us(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


def host_row(what: str, call: Callable[[], object], is_idle: bool = False) -> Row:
    def sample() -> float:
        if not is_idle:
            spin(5000)
        return host_us(lambda: [call() for _ in range(CALLS)]) / CALLS

    return cost_row(what, host_us=median_us(sample))


def copy_row(nbytes: int, device: torch.device) -> Row:
    """A copy within the device, as one of ten in a row behind a gate."""
    stream, x, y = torch.cuda.Stream(), floats(nbytes, device), floats(nbytes, device)

    def sample() -> float:
        gate(1000, stream)
        begin = mark(stream)
        with torch.cuda.stream(stream):
            for _ in range(10):
                y.copy_(x)
        return between(begin, mark(stream)) / 10

    return cost_row("copy_ within the device", nbytes, device_us=median_us(sample))


def hand_off_costs(device: torch.device) -> list[Row]:
    """From the end of the producer to the moment the consumer may begin, by way and by bytes."""
    p, c = torch.cuda.Stream(), torch.cuda.Stream()

    def sample(how: str, x: torch.Tensor, y: torch.Tensor) -> float:
        gate(500, p, c)
        with torch.cuda.stream(p):
            x.fill_(1)
        produced = mark(p)
        if how == "same stream":
            return between(produced, mark(p))
        if how == "host synchronizes":
            p.synchronize()
        else:
            c.wait_event(produced)
        if how == "event and clone":
            with torch.cuda.stream(c):
                y.copy_(x)
        return between(produced, mark(c))

    rows: list[Row] = []
    for nbytes in SIZES:
        x, y = floats(nbytes, device), floats(nbytes, device)
        for how in ("same stream", "event", "event and clone", "host synchronizes"):
            rows.append({"how": how, "bytes": nbytes, "us": median_us(lambda: sample(how, x, y))})  # noqa: B023
    return rows


def edge_costs(device: torch.device) -> list[Row]:
    """Tiny kernels one after the other: on one stream, and from one stream to the other and back."""
    a, b, x = torch.cuda.Stream(), torch.cuda.Stream(), floats(4 * KIB, device)

    def work(streams: tuple[torch.cuda.Stream, torch.cuda.Stream]) -> None:
        for i in range(CALLS):
            this, other = streams[i % 2], streams[(i + 1) % 2]
            with torch.cuda.stream(this):
                x.add_(1)
            if this is not other:
                other.wait_event(this.record_event())

    def live(streams: tuple[torch.cuda.Stream, torch.cuda.Stream]) -> float:
        opened = gate(20_000, a, b)
        work(streams)
        return between(opened, mark(a))

    def replayed(streams: tuple[torch.cuda.Stream, torch.cuda.Stream]) -> Callable[[], float]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=a):
            work(streams)

        def sample() -> float:
            opened = gate(1000, a)
            with torch.cuda.stream(a):
                graph.replay()
            return between(opened, mark(a))

        return sample

    rows: list[Row] = []
    for how in ("enqueued", "graph"):
        one, two = (
            median_us(replayed(streams) if how == "graph" else lambda: live(streams))  # noqa: B023
            for streams in ((a, a), (a, b))
        )
        edge = (two - one) / CALLS
        rows.append({"how": how, "kernels": CALLS, "one_stream_us": one, "two_streams_us": two, "us_per_edge": edge})
    return rows
