"""Chapter 3: which values a program on two streams may give: those that its legal executions give."""

from collections.abc import Callable, Iterable
from functools import partial

from lab.live.knobs import Values
from lab.live.quiz import Option, Posed
from lab.live.quiz_programs import BOTH, FIRST, NEITHER, SECOND, WANT, drop, hand_over
from lab.live.words import Both, counted, same
from lab.streams.executions import executions
from lab.streams.runtime import Runtime
from lab.streams.verdict import examine


def possible(run: Callable[[Runtime], float]) -> frozenset[float]:
    return frozenset(execution.value for execution in executions(run))


def by_values(text: Both, run: Callable[[Runtime], float], because: Both, without: Callable[[Runtime], float]) -> Posed:
    """Sets of values to choose from; `without` is the program without a wait, which may give more."""
    right, more = possible(run), possible(without)
    reasons = {
        frozenset([WANT]): Both("那要每一处都等到。", "For that all must be waited for."),
        frozenset([examine(run).value or 0.0]): Both("那只是其中一次执行。", "That is one execution of several."),
        more - {WANT}: Both("碰巧答对也合法。", "To be right by luck is legal too."),
        more: Both("等待排除了其中一些。", "The waits rule out some of them."),
        right: because,
    }
    sets = sorted(filter(None, reasons), key=lambda values: (len(values), sorted(values)))
    return Posed(text, [Option(set_key(s), same(set_key(s)), reasons[s]) for s in sets], set_key(right))


def set_key(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


def with_orders(run: Callable[[Runtime], float], because: Both) -> Both:
    """How many executions are legal, and why."""
    n = len(executions(run))
    are = "is" if n == 1 else "are"
    return Both(f"合法的执行有 {n} 种。{because.zh}", f"There {are} {counted(n, 'legal execution')}. {because.en}")


WAITS = {
    NEITHER: Both("没有等待", "no wait"),
    FIRST: Both("side 在读之前等 main", "side waits for main before it reads"),
    SECOND: Both("main 在改写之前等 side", "main waits for side before it writes again"),
    BOTH: Both("两边都等", "both waits"),
}


def pose_copy(values: Values) -> Posed:
    wait = str(values["wait"])
    run = partial(hand_over, copies=True, wait=wait)
    return by_values(
        Both(
            f"x 原来是 0。main 写 x = 1；side 先复制 x，再用这一份算 y = x + 1；{WAITS[wait].zh}。y 可能是哪些值？",
            "x is 0. main writes x = 1; side first copies x and computes y = x + 1 from the copy; "
            f"{WAITS[wait].en}. Which values may y have?",
        ),
        run,
        with_orders(
            run,
            Both("复制也是读，不等就可能读到旧的 0。", "A copy is a read, and without a wait it may read the old 0."),
        ),
        partial(hand_over, copies=True),
    )


def pose_rewrite(values: Values) -> Posed:
    wait = str(values["wait"])
    run = partial(hand_over, rewrites=True, wait=wait)
    return by_values(
        Both(
            "x 原来是 0。main 写 x = 1，再写 x = 7；side 在两次写之间排入 y = x + 1；"
            f"{WAITS[wait].zh}。y 可能是哪些值？",
            "x is 0. main writes x = 1 and then x = 7; between the two, side is given y = x + 1; "
            f"{WAITS[wait].en}. Which values may y have?",
        ),
        run,
        with_orders(
            run,
            Both(
                "先写后读、读完再改写，是两件事，各要一次等待。",
                "Reading after the write and writing after the read are two things, and each takes a wait.",
            ),
        ),
        partial(hand_over, rewrites=True),
    )


MENDS = {
    "none": Both("什么都不加", "nothing is added"),
    "wait": Both("释放之前 main 等 side", "main waits for side before the free"),
    "record_stream": Both("释放之前 x.record_stream(side)", "x.record_stream(side) before the free"),
}


def pose_free(values: Values) -> Posed:
    mend = str(values["mend"])
    run = partial(drop, mend=mend)
    hazards = len(examine(run).hazards)
    return by_values(
        Both(
            "x 是 1。side 排入 y = x + 1，main 随即释放 x，再分配同样大的 z，写 z = 7；"
            f"{MENDS[mend].zh}。y 可能是哪些值？",
            "x is 1. side is given y = x + 1; main frees x at once, allocates z of the same size and writes z = 7; "
            f"{MENDS[mend].en}. Which values may y have?",
        ),
        run,
        Both(
            f"检查器报告 {hazards} 处隐患。分配器只认得分配 x 的那条流，释放后内存立刻可以归 z。",
            f"The checker reports {counted(hazards, 'hazard')}. The allocator knows only the stream that x was "
            "allocated on, and may give the memory to z at once.",
        ),
        partial(drop, mend="none"),
    )
