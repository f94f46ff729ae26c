"""The host is one more stream: it reads and writes pinned memory while copies of it are still queued."""

from lab.streams.catalogue import LONG, N, broken, program, sound
from lab.streams.races import Kind
from lab.streams.runtime import Place, Runtime

RAW, WAR = Kind.READ_AFTER_WRITE, Kind.WRITE_AFTER_READ
FREED, UAF = Kind.FREED_EARLY, Kind.USE_AFTER_FREE


def d2h_read(rt: Runtime, wait: str = "", place: Place = "pinned") -> float:
    x, result = rt.full(N, 0, "x"), rt.full(N, 0, "result", place=place)
    with rt.measured():
        rt.fill(x, 1, us=LONG)
        rt.copy(result, x, non_blocking=wait != "blocking")
        if wait == "event":
            rt.synchronize(rt.record())
        elif wait == "query":
            copied = rt.record()
            while not rt.query(copied):
                rt.work(20)
        value = rt.read(result)
    return value


def staging_reuse(rt: Runtime, mend: str = "", place: Place = "pinned") -> float:
    x, ids = rt.full(N, 0, "x"), rt.full(N, 1, "ids", place=place)
    with rt.measured():
        rt.spin(LONG)
        rt.copy(x, ids)
        if mend == "event":
            rt.synchronize(rt.record())
        if mend == "fresh":
            rt.free(ids)  # PyTorch's host allocator keeps it until the copy has run
            rt.full(N, 7, "next ids", place=place)
        else:
            rt.write(ids, 7)
    return rt.mean(x)


def pageable(rt: Runtime, place: Place) -> float:
    x, ids = rt.full(N, 0, "x"), rt.full(N, 1, "ids", place=place)
    with rt.measured():
        rt.spin(LONG)
        rt.copy(x, ids)
        rt.work(100)
    return rt.mean(x)


def host_sync_in_loop(rt: Runtime, host_waits: bool, steps: int = 6) -> float:
    buffers = [rt.full(N, 0, "even"), rt.full(N, 0, "odd")]
    y = rt.full(N, 0, "y")
    used = [rt.record(on="side"), rt.record(on="side")]
    with rt.measured():
        for step in range(steps):
            rt.wait(used[step % 2], on="main")
            rt.fill(buffers[step % 2], step, us=100)
            if host_waits:
                rt.synchronize("main")
            else:
                rt.wait_stream("main", on="side")
            rt.add(y, buffers[step % 2], 1, on="side", us=100)
            rt.record(used[step % 2], on="side")
    return rt.mean(y)


def async_output(rt: Runtime, wait: bool = True, keep: bool = True, synchronize: bool = True) -> float:
    """What vLLM's AsyncGPUModelRunnerOutput does: sampled ids go to the host while the next step is enqueued."""
    ids, result = rt.full(N, 0, "ids"), rt.full(N, 0, "result", place="pinned")
    with rt.measured():
        rt.fill(ids, 1, us=LONG)
        if wait:
            rt.wait_stream("main", on="copy")
        rt.copy(result, ids, on="copy")
        copied = rt.record(on="copy")
        if not keep:
            rt.free(ids)
        rt.full(N, 7, "next step")
        if synchronize:
            rt.synchronize(copied)
        value = rt.read(result)
    return value


PROGRAMS = (
    program(
        d2h_read, 1,
        broken("broken", RAW),
        sound("event", wait="event"),
        sound("query", wait="query"),
        sound("blocking", wait="blocking"),
        sound("pageable", place="pageable"),
        zh="异步拷到主机，没等完就读",
        en="copied to the host without blocking, and read at once",
        source="pytorch#86264, pytorch#140296, sglang#16493",
    ),
    program(
        staging_reuse, 1,
        broken("broken", WAR),
        sound("event", mend="event"),
        sound("fresh", mend="fresh"),
        sound("pageable", place="pageable"),
        zh="暂存区还没拷走就写下一步的数据",
        en="the staging buffer written again before the queued copy has read it",
        source="TensorRT-LLM#15546, vllm#47644, mini-sglang#58",
    ),
    program(
        pageable, 1,
        sound("pageable", place="pageable"),
        sound("pinned", place="pinned"),
        zh="可换页内存让异步拷贝变成等待",
        en="from pageable memory, a copy without blocking blocks",
        source="vllm#54660, vllm#55202",
    ),
    program(
        host_sync_in_loop, 6,
        sound("host", host_waits=True),
        sound("event", host_waits=False),
        zh="每步都让主机停下来等",
        en="the host waits in every step",
        source="luminal#322",
    ),
    program(
        async_output, 1,
        sound("as-is"),
        broken("no-wait", RAW, wait=False),
        broken("no-reference", FREED, UAF, right=None, keep=False),  # a fast link copies 1 MiB before it is overwritten
        broken("no-synchronize", RAW, synchronize=False),
        zh="vLLM 的异步输出：去掉任何一条都会出错",
        en="vLLM's asynchronous output, and each of its three lines taken away",
        source="vLLM, AsyncGPUModelRunnerOutput",
    ),
)  # fmt: skip
