"""Overlap that isn't: nothing is wrong, and two streams are as slow as one. And what a graph may hold."""

from lab.streams.catalogue import LONG, N, broken, program, refused, sound
from lab.streams.races import Kind
from lab.streams.runtime import Event, Runtime


def wait_too_much(rt: Runtime, how: str) -> float:
    x, z, y = rt.full(N, 0, "x"), rt.full(N, 0, "z"), rt.full(N, 0, "y")
    with rt.measured():
        rt.fill(x, 1, us=100)
        ready = rt.record()
        rt.fill(z, 7, us=LONG)
        if how == "stream":
            rt.wait_stream("main", on="side")
        else:
            rt.wait(ready, on="side")
        rt.add(y, x, 1, on="side", us=LONG)
    return rt.mean(y)


def sm_full(rt: Runtime, share: float) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.fill(x, 1, us=300, share=share)
        rt.fill(y, 2, us=300, share=share, on="side")
    return rt.mean(y)


def launch_bound(rt: Runtime, us: float, graph: bool = False, kernels: int = 10) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")

    def both() -> None:
        rt.wait_stream("main", on="side")
        for _ in range(kernels):
            rt.add(x, x, 1, us=us)
            rt.add(y, y, 1, us=us, on="side")
        rt.wait_stream("side", on="main")

    if graph:
        with rt.capture() as captured:
            both()
    with rt.measured():
        if graph:
            rt.replay(captured)
        else:
            both()
    return rt.mean(y)


def pipeline(rt: Runtime, buffers: int, wait: bool, chunks: int = 6) -> float:
    sources = [rt.full(N, i, f"chunk {i}", place="pinned") for i in range(chunks)]
    slots, y = [rt.full(N, 0, f"slot {i}") for i in range(buffers)], rt.full(N, 0, "y")
    used = [Event(f"slot {i} used") for i in range(buffers)]
    with rt.measured():
        for i, source in enumerate(sources):
            slot = i % buffers
            if wait:
                rt.wait(used[slot], on="load")
            rt.copy(slots[slot], source, on="load")
            rt.wait_stream("load", on="main")
            rt.add(y, y, slots[slot], us=60)
            rt.record(used[slot])
    return rt.mean(y)


def graph(rt: Runtime, join: bool = True, outside: bool = False, synchronize: bool = False) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    before = rt.record(on="other")
    with rt.capture() as captured:
        rt.fill(x, 1, us=LONG)
        if outside:
            rt.wait(before, on="main")
        if synchronize:
            rt.synchronize("main")
        rt.wait_stream("main", on="side")
        rt.add(y, x, 1, on="side")
        if join:
            rt.wait_stream("side", on="main")
    with rt.measured():
        rt.replay(captured)
    return rt.mean(y)


PROGRAMS = (
    program(
        wait_too_much, 2,
        sound("stream", how="stream"),
        sound("event", how="event"),
        zh="等了整条流，其实只需等一个事件",
        en="waiting for a stream where an event was meant",
        source="sglang#26646",
    ),
    program(
        sm_full, 2,
        sound("full", share=1.0),
        sound("quarter", share=0.25),
        zh="一个内核占满设备，两条流也不会更快",
        en="kernels that fill the device, side by side",
        source="pytorch#59692, pytorch#48279",
    ),
    program(
        launch_bound, 10,
        sound("short", us=2),
        sound("long", us=40),
        sound("graph", us=2, graph=True),
        zh="内核比发射还短，流里总是空的",
        en="kernels shorter than their launch",
        source="pytorch#59692",
    ),
    program(
        pipeline, 15,
        broken("broken", Kind.WRITE_AFTER_READ, buffers=1, wait=False),
        sound("one-buffer", buffers=1, wait=True),
        sound("two-buffers", buffers=2, wait=True),
        zh="边拷边算：一个缓冲区和两个",
        en="copy and compute at once, with one buffer and with two",
        source="vllm#29013",
    ),
    program(
        graph, 2,
        sound("joined"),
        refused("unjoined", "unjoined", join=False),
        refused("outside", "isolation", outside=True),
        refused("synchronize", "unsupported", synchronize=True),
        zh="CUDA 图捕获的规矩",
        en="the rules of graph capture",
        source="DeepEP#62, warp#1469, torchcomms#3834",
    ),
)  # fmt: skip
