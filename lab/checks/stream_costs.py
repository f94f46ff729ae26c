"""What streams cost on a GPU: events, edges, copies and overlap, each with its method. Nothing here runs on the CPU.

Clocks move, so spins are calibrated on a warm device. Where the host's pace must not count, everything is enqueued
behind a gate: a spin on a third stream that all wait for. Fewer than 1,000 commands wait behind one, or launches would
block (vllm#29013). Medians of REPEATS after WARMUP; times without the profiler, counts with it.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from lab.measure.records import Row
from lab.streams_torch.cuda import cycles_per_us
from lab.streams_torch.profile import Work, profiled

WARMUP, REPEATS = 3, 7
KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
CALLS = 100  # of one kind behind a gate
HOST_COPY_BYTES = 256 * MIB
MATRIX_SIZES = (64, 256, 1024, 2048, 4096)
PRODUCTS = 10  # on each stream


def spin(us: float) -> None:
    """Keep the current stream busy."""
    torch.cuda._sleep(round(us * cycles_per_us()))


def gate(us: float, *streams: torch.cuda.Stream) -> torch.cuda.Event:
    """Let the streams wait until a third one has spun; returns the event, with its time, that opens them."""
    opener, opened = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(opener):
        spin(us)
        opened.record()
    for stream in streams:
        stream.wait_event(opened)
    return opened


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


def overlap_of_products(device: torch.device) -> list[Row]:
    """Matrix products on two streams and all on one, behind a gate and as fast as the host launches them."""
    streams = torch.cuda.Stream(), torch.cuda.Stream()

    def sample(operands: tuple[torch.Tensor, ...], used: int, is_gated: bool) -> float:
        left, right, *results = operands
        begin = gate(20_000, *streams) if is_gated else mark(streams[0])
        for _ in range(PRODUCTS):
            for j in range(2):
                with torch.cuda.stream(streams[j % used]):
                    torch.mm(left, right, out=results[j])
        streams[0].wait_stream(streams[1])
        return between(begin, mark(streams[0]))

    rows: list[Row] = []
    for n in MATRIX_SIZES:
        operands = tuple(torch.ones(n, n, device=device, dtype=torch.float16) for _ in range(4))
        for is_gated in (False, True):
            one, two = (median_us(lambda: sample(operands, used, is_gated)) for used in (1, 2))  # noqa: B023
            row: Row = {
                "n": n,
                "products": 2 * PRODUCTS,
                "gated": is_gated,
                "one_stream_us": one,
                "two_streams_us": two,
            }
            rows.append({**row, "speed_up": one / two})
    return rows


def hidden_copies(device: torch.device) -> list[Row]:
    """Which operations copy, and what a count of "Memcpy DtoD" sees of them."""
    x, kv = torch.ones(1024, 1024, device=device), torch.zeros(8, 1024, device=device)
    # name: (operation, copies of the device that the profile must show, whether the result shares x's storage)
    operations: dict[str, tuple[Callable[[], torch.Tensor], int, bool]] = {
        "x.view(-1)": (lambda: x.view(-1), 0, True),
        "x.t()": (lambda: x.t(), 0, True),
        "x.to(x.dtype)": (lambda: x.to(x.dtype), 0, True),
        "x.clone()": (lambda: x.clone(), 1, False),
        "x.t().contiguous()": (lambda: x.t().contiguous(), 0, False),
        "x.t().reshape(-1)": (lambda: x.t().reshape(-1), 0, False),
        "x.half()": (lambda: x.half(), 0, False),
        "torch.cat([x, x])": (lambda: torch.cat([x, x]), 0, False),
        "kv[0:3].copy_(x[0:3])": (lambda: kv[0:3].copy_(x[0:3]), 1, False),
        "kv[[0, 1, 2]].copy_(x[0:3])": (lambda: kv[[0, 1, 2]].copy_(x[0:3]), 1, False),
    }
    return [copies_row(what, *operation, x) for what, operation in operations.items()]


def copies_row(what: str, run: Callable[[], torch.Tensor], copies: int, shares: bool, x: torch.Tensor) -> Row:
    run()  # what is loaded at first use isn't the operation's
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    works: list[Work] = []
    with profiled(works):
        result = run()
    found = [work for work in works if work.is_device_copy]
    row: dict[str, Any] = {
        "what": what,
        "device_copies": len(found),
        "device_bytes": sum(work.nbytes for work in found),
        "kernels": len([work for work in works if work.nbytes == 0]),
        "allocations": torch.cuda.memory_stats()["allocation.all.allocated"] - before,
        "shares_storage": result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
    }
    return {**row, "match": (row["device_copies"], row["shares_storage"]) == (copies, shares)}
