"""ORDER and PLACEMENT: a tensor made on one stream is used on another."""

from lab.streams.catalogue import LONG, N, broken, program, sound
from lab.streams.races import Kind
from lab.streams.runtime import Runtime

RAW, WAR, WAW = Kind.READ_AFTER_WRITE, Kind.WRITE_AFTER_READ, Kind.WRITE_AFTER_WRITE


def raw(rt: Runtime, wait: str = "", us: float = LONG) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.fill(x, 1, us=us)
        if wait == "event":
            rt.wait(rt.record(), on="side")
        elif wait == "stream":
            rt.wait_stream("main", on="side")
        rt.add(y, x, 1, on="side")
    return rt.mean(y)


def war(rt: Runtime, mend: str = "") -> float:
    x, spare, y = rt.full(N, 1, "x"), rt.full(N, 0, "spare"), rt.full(N, 0, "y")
    with rt.measured():
        if mend == "copy":
            rt.copy(spare, x, on="side")
            copied = rt.record(on="side")
            rt.add(y, spare, 1, on="side", us=LONG)
            rt.wait(copied, on="main")
        else:
            rt.add(y, x, 1, on="side", us=LONG)
        if mend == "wait":
            rt.wait_stream("side", on="main")
        rt.fill(spare if mend == "second buffer" else x, 7)
    return rt.mean(y)


def copy_no_help(rt: Runtime, wait: bool) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    clone = rt.full(N, 0, "clone", on="side")
    with rt.measured():
        rt.fill(x, 1, us=LONG)
        if wait:
            rt.wait_stream("main", on="side")
            rt.add(y, x, 1, on="side")
        else:
            rt.copy(clone, x, on="side")
            rt.add(y, clone, 1, on="side")
    return rt.mean(y)


def handoff(rt: Runtime, how: str) -> float:
    x, y, clone = rt.full(N, 0, "x"), rt.full(N, 0, "y"), rt.full(N, 0, "clone")
    with rt.measured():
        rt.fill(x, 1, us=100)
        if how == "clone":
            rt.copy(clone, x)
        if how == "host":
            rt.synchronize("main")
        else:
            rt.wait_stream("main", on="side")
        rt.add(y, clone if how == "clone" else x, 1, on="side")
    return rt.mean(y)


def views(rt: Runtime, start: int, wait: bool) -> float:
    x = rt.full(N, 0, "x")
    left, right = x.view(0, N // 2), x.view(start, N)
    with rt.measured():
        rt.fill(left, 1, us=LONG)
        if wait:
            rt.wait_stream("main", on="side")
        rt.fill(right, 2, on="side")
    return rt.mean(x)


PROGRAMS = (
    program(
        raw, 2,
        broken("broken", RAW),
        broken("lucky", RAW, right=None, us=1),
        sound("event", wait="event"),
        sound("stream", wait="stream"),
        zh="另一条流还没写完就读了",
        en="read on one stream before it was written on the other",
        source="vllm#45704, vllm#31341, ROCm/pytorch#3194",
    ),
    program(
        war, 2,
        broken("broken", WAR),
        sound("wait", mend="wait"),
        sound("second-buffer", mend="second buffer"),
        sound("copy-out", mend="copy", copies=1),
        zh="另一条流还在读就被改写",
        en="written again while the other stream still reads",
        source="sglang#18744, sglang#26376, vllm#47282",
    ),
    program(
        copy_no_help, 2,
        broken("clone", RAW, copies=1, wait=False),
        sound("event", wait=True),
        zh="先拷贝一份也代替不了等待",
        en="a defensive copy doesn't replace the wait",
    ),
    program(
        handoff, 2,
        sound("event", how="event"),
        sound("clone", how="clone", copies=1),
        sound("host", how="host"),
        zh="交接一个张量的三种写法",
        en="three ways to hand a tensor over",
    ),
    program(
        views, 1.75,
        broken("overlapping", WAW, start=N // 4, wait=False),
        sound("event", start=N // 4, wait=True),
        sound("disjoint", start=N // 2, wait=False, want=1.5),
        zh="一块存储的两个视图",
        en="two views of one storage",
        source="pytorch#27366",
    ),
)  # fmt: skip
