"""LIFETIME: the order is right, and the memory belongs to somebody else."""

from collections import deque

from lab.streams.catalogue import LONG, N, broken, program, sound
from lab.streams.races import Kind
from lab.streams.runtime import Event, Runtime, Tensor

RAW, UAF = Kind.READ_AFTER_WRITE, Kind.USE_AFTER_FREE
FREED, TOUCHED = Kind.FREED_EARLY, Kind.TOUCHED_EARLY


def free_early(rt: Runtime, mend: str = "") -> float:
    x, y = rt.full(N, 1, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.add(y, x, 1, on="side", us=LONG)
        if mend == "home waits":
            rt.wait_stream("side", on="main")
        elif mend == "record":
            rt.record_stream(x, "side")
        elif mend == "record view":
            rt.record_stream(x.view(2, N), "side")
        if mend != "keep":
            rt.free(x)
        rt.full(N, 7, "z")
    return rt.mean(y)


def wait_or_record(rt: Runtime, wait: bool, record: bool) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.fill(x, 1, us=LONG)
        if wait:
            rt.wait_stream("main", on="side")
        rt.add(y, x, 1, on="side", us=LONG / 2)
        if record:
            rt.record_stream(x, "side")
        rt.free(x)
        rt.full(N, 7, "z")
    return rt.mean(y)


def first_touch(rt: Runtime, wait: bool, on: str = "main") -> float:
    old, y = rt.full(N, 1, "old"), rt.full(N, 0, "y")
    with rt.measured():
        rt.add(y, old, 1, us=LONG)
        rt.free(old)
        x = rt.empty(N, "x", on=on)
        if wait:
            rt.wait_stream("main", on="side")
        rt.fill(x, 7, on="side")
    return rt.mean(y)


def three_streams(rt: Runtime, home_waits: bool) -> float:
    x, y = rt.full(N, 1, "x"), rt.full(N, 0, "y")
    with rt.measured():
        rt.add(x, x, 1, on="reduce", us=LONG)
        rt.wait_stream("reduce", on="user")
        rt.add(y, x, 1, on="user")
        if home_waits:
            rt.wait_stream("user", on="main")
        rt.free(x)
        z = rt.full(N, 7, "z")
    return rt.mean(z)


def temporary(rt: Runtime, mend: str = "") -> float:
    y = rt.full(N, 0, "y")
    with rt.measured():
        branch = rt.full(N, 1, "branch", on="side")
        rt.wait_stream("side", on="main")
        rt.add(y, branch, 1, us=LONG)
        if mend == "home waits":
            rt.wait_stream("main", on="side")
        elif mend == "record":
            rt.record_stream(branch, "main")
        rt.free(branch)  # the function of the branch returns
        rt.full(N, 7, "next", on="side")
    return rt.mean(y)


def growth(rt: Runtime, how: str, rounds: int = 20) -> float:
    y = rt.full(N, 0, "y")
    held: deque[tuple[Tensor, Event]] = deque()
    with rt.measured():
        for _ in range(rounds):
            if len(held) == 2:
                buffer, done = held.popleft()
                if how == "host waits":
                    rt.synchronize(done)
                if how == "home waits":
                    rt.wait(done, on="main")
                    rt.free(buffer)
            buffer = rt.full(N, 1, "buffer")
            rt.wait_stream("main", on="side")
            rt.add(y, y, buffer, on="side", us=100)
            held.append((buffer, rt.record(on="side")))
            if how != "home waits":
                rt.record_stream(buffer, "side")
                rt.free(buffer)
    return rt.mean(y)


def side_pool(rt: Runtime, build_on: str, parts: int = 4) -> float:
    with rt.measured():
        built = [rt.full(N, 1, f"part {i}", on=build_on) for i in range(parts)]
        rt.wait_stream(build_on, on="main")
        for part in built:
            rt.free(part)
        used = [rt.full(N, 2, f"activation {i}") for i in range(parts)]
    return rt.mean(used[-1])


PROGRAMS = (
    program(
        free_early, 2,
        broken("broken", FREED, UAF),
        sound("home-waits", mend="home waits"),
        sound("record-stream", mend="record"),
        sound("record-view", mend="record view"),
        sound("keep", mend="keep"),
        zh="另一条流还在用，内存已分给新张量",
        en="freed, and handed out again, while the other stream still reads",
        source="pytorch#49915, sglang#34076, torchrec#4231, onnxruntime#4829, pytorch#27366",
    ),
    program(
        wait_or_record, 2,
        broken("neither", RAW, FREED, UAF, wait=False, record=False),
        broken("wait-only", FREED, UAF, wait=True, record=False),
        broken("record-only", RAW, wait=False, record=True),
        sound("both", wait=True, record=True),
        zh="record_stream 管寿命，不管次序",
        en="record_stream is about lifetime, not about order",
        source="pytorch#24078, pytorch#113282",
    ),
    program(
        first_touch, 2,
        broken("broken", TOUCHED, UAF, wait=False),
        sound("wait", wait=True),
        sound("own-stream", wait=False, on="side"),
        zh="新张量在另一条流上先被写，旧主人还在读",
        en="first written on a stream that doesn't wait for the allocating one",
        source="DeepEP#262, rapidsmpf#227",
    ),
    program(
        three_streams, 7,
        broken("broken", FREED, UAF, home_waits=False),
        sound("mended", home_waits=True),
        zh="用的那条流等了，分配的那条流没等",
        en="the user's stream waited, the home stream didn't",
        source="pytorch#188655",
    ),
    program(
        temporary, 2,
        broken("broken", FREED, UAF),
        sound("home-waits", mend="home waits"),
        sound("record-stream", mend="record"),
        zh="支流上的临时张量，主流还在读",
        en="a side stream's temporary that the main stream still reads",
        source="pytorch#91096",
    ),
    program(
        growth, 20,
        sound("record-stream", how="record"),
        sound("host-waits", how="host waits"),
        sound("home-waits", how="home waits"),
        zh="record_stream 让显存一路上涨",
        en="record_stream lets memory grow",
        source="pytorch#147168, torchtitan#735, DeepEP#455",
    ),
    program(
        side_pool, 2,
        sound("side", build_on="side"),
        sound("main", build_on="main"),
        zh="支流池子里的空块，主流用不上",
        en="blocks cached for a side stream can't serve the main one",
        source="Megatron-LM#6885",
    ),
)  # fmt: skip
