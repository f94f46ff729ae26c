"""ORDER: events that are there and still don't mean what their author thought."""

from lab.streams.catalogue import LONG, N, broken, program, sound
from lab.streams.races import Kind
from lab.streams.runtime import Event, Runtime

RAW = Kind.READ_AFTER_WRITE


def wait_before_record(rt: Runtime, wait_first: bool) -> float:
    x, y = rt.full(N, 0, "x"), rt.full(N, 0, "y")
    ready = Event("ready")
    with rt.measured():
        if wait_first:
            rt.wait(ready, on="side")
        rt.fill(x, 1, us=LONG)
        rt.record(ready)
        if not wait_first:
            rt.wait(ready, on="side")
        rt.add(y, x, 1, on="side")
    return rt.mean(y)


def event_reuse(rt: Runtime, one_event: bool) -> float:
    first, second, y = rt.full(N, 0, "first"), rt.full(N, 0, "second"), rt.full(N, 0, "y")
    ready = Event("ready")
    with rt.measured():
        rt.fill(first, 1, us=100)
        rt.record(ready)
        rt.fill(second, 2, us=LONG)
        rt.record(ready if one_event else Event("second ready"))
        rt.wait(ready, on="side")
        rt.add(y, first, 1, on="side", us=LONG)
    return rt.mean(y)


def last_event(rt: Runtime, keep_all: bool) -> float:
    left, right, y = rt.full(N, 0, "left"), rt.full(N, 0, "right"), rt.full(N, 0, "y")
    pending: list[Event] = []
    with rt.measured():
        for part, value, stream, us in ((left, 1, "a", LONG), (right, 2, "b", 10)):
            rt.fill(part, value, on=stream, us=us)
            done = rt.record(on=stream)
            pending = [*pending, done] if keep_all else [done]
        for done in pending:
            rt.wait(done, on="main")
        rt.add(y, left, right)
    return rt.mean(y)


def wrong_key(rt: Runtime, physical: bool) -> float:
    cache, y = rt.full(2 * N, 0, "cache"), rt.full(N, 0, "y")
    blocks = [cache.view(0, N), cache.view(N, 2 * N)]
    table = {0: 1, 1: 0}  # logical to physical
    ready: dict[int, Event] = {}
    with rt.measured():
        for logical, us in ((1, 10), (0, LONG)):
            rt.fill(blocks[table[logical]], 1, us=us)
            ready[table[logical]] = rt.record()
        logical = 0
        rt.wait(ready[table[logical] if physical else logical], on="side")
        rt.add(y, blocks[table[logical]], 1, on="side")
    return rt.mean(y)


def step_later(rt: Runtime, steps: int, wait: bool) -> float:
    block, saved = rt.full(N, 0, "block"), rt.full(N, 0, "saved", place="pinned")
    with rt.measured():
        rt.fill(block, 1, us=LONG)
        computed = rt.record()
        for _ in range(steps):
            rt.work(50)  # the host plans a step; its books say that the block has been computed
        if wait:
            rt.wait(computed, on="offload")
        rt.copy(saved, block, on="offload")
    rt.synchronize()
    return rt.read(saved)


PROGRAMS = (
    program(
        wait_before_record, 2,
        broken("broken", RAW, wait_first=True),
        sound("mended", wait_first=False),
        zh="事件还没记录就等待，等于没等",
        en="a wait for an event that isn't recorded yet is no wait",
        source="cuda-python#559",
    ),
    program(
        event_reuse, 2,
        sound("one-event", one_event=True),
        sound("two-events", one_event=False),
        zh="同一个事件再次记录，等的人就等到了后一次",
        en="an event recorded again: who waits now waits for the later record",
        source="vllm#39115",
    ),
    program(
        last_event, 3,
        broken("broken", RAW, keep_all=False),
        sound("mended", keep_all=True),
        zh="几个异步操作只等了最后一个",
        en="of several pending events only the last was kept",
        source="prime-rl#3411",
    ),
    program(
        wrong_key, 2,
        broken("broken", RAW, physical=False),
        sound("mended", physical=True),
        zh="事件按逻辑块号存，拷贝却用物理块号",
        en="events kept by logical block, copies made by physical block",
        source="TensorRT-LLM#9056",
    ),
    program(
        step_later, 1,
        broken("one-step", RAW, steps=1, wait=False),
        broken("three-steps", RAW, steps=3, wait=False),
        sound("event", steps=1, wait=True),
        zh="主机过了几步，不等于设备算完了",
        en="steps of the host are no order of the device",
        source="vllm#45704",
    ),
)  # fmt: skip
