"""ORDER: a KV block goes from one use to the next. Before a write, wait for its readers and its writers."""

from lab.streams.catalogue import LONG, N, broken, program, sound
from lab.streams.races import Kind
from lab.streams.runtime import Runtime

WAR, WAW = Kind.WRITE_AFTER_READ, Kind.WRITE_AFTER_WRITE


def store_then_reuse(rt: Runtime, wait: bool) -> float:
    block, saved = rt.full(N, 1, "block"), rt.full(N, 0, "saved", place="pinned")
    with rt.measured():
        rt.spin(LONG, on="store")
        rt.copy(saved, block, on="store")
        if wait:
            rt.wait_stream("store", on="main")
        rt.fill(block, 7)
    rt.synchronize()
    return rt.read(saved)


def read_then_restore(rt: Runtime, wait: bool) -> float:
    block, y = rt.full(N, 1, "block"), rt.full(N, 0, "y")
    saved = rt.full(N, 7, "saved", place="pinned")
    with rt.measured():
        rt.add(y, block, 1, us=LONG)
        if wait:
            rt.wait_stream("main", on="load")
        rt.copy(block, saved, on="load")
    return rt.mean(y)


def zero_then_restore(rt: Runtime, wait: bool) -> float:
    block, saved = rt.full(N, 7, "block"), rt.full(N, 1, "saved", place="pinned")
    with rt.measured():
        rt.fill(block, 0, us=LONG)
        if wait:
            rt.wait_stream("main", on="load")
        rt.copy(block, saved, on="load")
    return rt.mean(block)


def two_stores(rt: Runtime, wait: bool) -> float:
    old, new = rt.full(N, 7, "old"), rt.full(N, 1, "new")
    slot = rt.full(N, 0, "slot", place="pinned")
    with rt.measured():
        rt.spin(LONG, on="store")
        rt.copy(slot, old, on="store")
        if wait:
            rt.wait_stream("store", on="second store")
        rt.copy(slot, new, on="second store")
    rt.synchronize()
    return rt.read(slot)


SOURCE = "vllm#47282, vllm#50863, TensorRT-LLM#9056"

PROGRAMS = (
    program(
        store_then_reuse, 1,
        broken("broken", WAR, wait=False),
        sound("mended", wait=True),
        zh="块还在往外存就分给了别人", en="a block used again while it is still being stored", source=SOURCE,
    ),
    program(
        read_then_restore, 2,
        broken("broken", WAR, wait=False),
        sound("mended", wait=True),
        zh="注意力还在读，块已被恢复的数据覆盖", en="restored into a block that attention still reads", source=SOURCE,
    ),
    program(
        zero_then_restore, 1,
        broken("broken", WAW, wait=False),
        sound("mended", wait=True),
        zh="清零在后，恢复的数据被抹掉", en="restored, then blanked by a zeroing that came late", source=SOURCE,
    ),
    program(
        two_stores, 1,
        broken("broken", WAW, wait=False),
        sound("mended", wait=True),
        zh="两次存储写进同一个槽", en="two stores into one slot", source=SOURCE,
    ),
)  # fmt: skip
