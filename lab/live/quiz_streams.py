"""Chapter 3: what a program on two streams may give: what at least one of its legal executions does."""

from collections.abc import Callable, Iterable
from functools import partial

from lab.live.knobs import Choice, Slider, Values
from lab.live.quiz import Option, Posed, Question, Quiz, Reason, by_number
from lab.live.quiz_programs import BOTH, FIRST, NEITHER, SECOND, drop, hand_over, two_chunks, waits_needed
from lab.live.words import Both, same
from lab.streams.executions import executions
from lab.streams.runtime import ITEM_BYTES, MAIN, Runtime
from lab.streams.verdict import examine

MIB = 2**20 // ITEM_BYTES  # elements
WANT = 2  # of the programs below, where nothing goes wrong


def pose_bytes(values: Values) -> Posed:
    mib = int(values["mib"])

    def copied(copies: bool) -> int:
        verdict = examine(partial(hand_over, numel=mib * MIB, wait=FIRST, copies=copies), WANT)
        assert verdict.right and not verdict.hazards
        return verdict.measures.device_bytes // 2**20

    return by_number(
        Both(
            f"主流算出 {mib} MiB 的 x，交给另一条流去用。至少要在显存里复制多少 MiB？",
            f"The main stream computes x, {mib} MiB, and another stream is to use it. How many MiB must be copied "
            "in device "
            "memory at the least?",
        ),
        lambda n: same(f"{n:.0f} MiB"),
        (
            copied(False),
            Both(
                "所有的流共用一个地址空间，欠下的只是次序：一个事件就够，检查器没有发现隐患。",
                "All streams share one address space; what is owed is the order. An event is enough, and the "
                "checker finds "
                "no hazard.",
            ),
        ),
        (
            copied(True),
            Both(
                "复制一份也对，但也要先等；等了就不必复制。",
                "A copy is right too, but has to wait as well, and then serves no purpose.",
            ),
        ),
        (2 * copied(True), Both("那是复制一份时读写的字节。", "That is what a copy reads and writes.")),
    )


def possible(run: Callable[[Runtime], float]) -> frozenset[float]:
    return frozenset(execution.value for execution in executions(run))


def by_values(text: Both, run: Callable[[Runtime], float], because: Both, without: Callable[[Runtime], float]) -> Posed:
    """Sets of values to choose from; `without` is the program without a wait, which may give more."""
    right = possible(run)
    mistakes = {
        frozenset([WANT]): Both("那要每一处都等到。", "For that all must be waited for."),
        frozenset([examine(run).value or 0.0]): Both("那只是其中一次执行。", "That is one execution of several."),
        possible(without) - {WANT}: Both("碰巧答对也合法。", "To be right by luck is legal too."),
        possible(without): Both("等待排除了其中一些。", "The waits rule out some of them."),
    }
    sets = sorted(mistakes.keys() | {right}, key=lambda values: (len(values), sorted(values)))
    options = [Option(set_key(s), same(set_key(s)), because if s == right else mistakes[s]) for s in sets if s]
    return Posed(text, options, set_key(right))


def set_key(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


WAITS = {
    NEITHER: Both("没有等待", "no wait"),
    FIRST: Both("side 在读之前等 main", "side waits for main before it reads"),
    SECOND: Both("main 在改写之前等 side", "main waits for side before it writes again"),
    BOTH: Both("两边都等", "both waits"),
}


def pose_copy(values: Values) -> Posed:
    wait = str(values["wait"])
    run = partial(hand_over, copies=True, wait=wait)
    orders = len(executions(run))
    return by_values(
        Both(
            f"x 原来是 0。main 写 x = 1；side 先复制 x，再用这一份算 y = x + 1；{WAITS[wait].zh}。y 可能是哪些值？",
            "x is 0. main writes x = 1; side first copies x and computes y = x + 1 from the copy; "
            f"{WAITS[wait].en}. Which "
            "values may y have?",
        ),
        run,
        Both(
            f"合法的执行有 {orders} 种。复制也是读，不等就可能读到旧的 0。",
            f"There are {orders} legal executions. A copy is a read, and without a wait it may read the old 0.",
        ),
        partial(hand_over, copies=True),
    )


def pose_rewrite(values: Values) -> Posed:
    wait = str(values["wait"])
    run = partial(hand_over, rewrites=True, wait=wait)
    orders = len(executions(run))
    return by_values(
        Both(
            f"x 原来是 0。main 写 x = 1，再写 x = 7；side 在两次写之间排入 y = x + 1；{WAITS[wait].zh}。y "
            "可能是哪些值？",
            "x is 0. main writes x = 1 and then x = 7; between the two, side is given y = x + 1; "
            f"{WAITS[wait].en}. Which values "
            "may y have?",
        ),
        run,
        Both(
            f"合法的执行有 {orders} 种。先写后读、读完再改写，是两件事，各要一次等待。",
            f"There are {orders} legal executions. Reading after the write and writing after the read are two "
            "things, and each "
            "takes a wait.",
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
            f"x 是 1。side 排入 y = x + 1，main 随即释放 x，再分配同样大的 z，写 z = 7；{MENDS[mend].zh}。y "
            "可能是哪些值？",
            f"x is 1. side is given y = x + 1; main frees x at once, allocates z of the same size and writes z = 7; "
            f"{MENDS[mend].en}. Which values may y have?",
        ),
        run,
        Both(
            f"检查器报告 {hazards} 处隐患。分配器只认得分配 x 的那条流，释放后内存立刻可以归 z。",
            f"The checker reports {hazards} hazards. The allocator knows only the stream that x was allocated on, "
            "and may give "
            "the memory to z at once.",
        ),
        partial(drop, mend="none"),
    )


def pose_waits(values: Values) -> Posed:
    buffers = int(values["buffers"])
    program = two_chunks(buffers)
    waits, _ = waits_needed(program)
    zh = "，".join(f"{j + 1} 等 {i + 1}" for i, j in waits)
    en = ", ".join(f"{j + 1} for {i + 1}" for i, j in waits)
    wrong: list[Reason] = [
        (
            2,
            Both(
                "那只顾到先写后读，改写之前也要等读完。",
                "That is read after write only; a rewrite has to wait for the read too.",
            ),
        ),
        (1, Both("每块都要等。", "Each chunk has to be waited for.")),
        (3, Both("缓冲区够用，就不必等读完。", "With buffers enough nothing needs to wait for a read.")),
        (
            len(program.operations()),
            Both("同一条流上的先后不用等。", "Inside a stream the order is there without a wait."),
        ),
    ]
    return by_number(
        Both(
            f"两块数据，{buffers} 个缓冲区：load 流拷进来，main 流加到 y 上，一块接一块。两条流之间，"
            "最少要几次等待才没有隐患？",
            f"Two chunks, {buffers} buffer{'s' * (buffers > 1)}: the stream load copies one in, main adds it to y, "
            "chunk after chunk. "
            "How many waits between the streams does it take at the least, for no hazard to be left?",
        ),
        lambda n: Both(f"{n:.0f} 次", f"{n:.0f}"),
        (
            len(waits),
            Both(
                f"所有组合都试过。四个操作按排入的先后编号，{zh}。",
                f"All combinations were tried. With the four operations numbered as they are enqueued: {en}.",
            ),
        ),
        *wrong,
    )


def pose_faster(values: Values) -> Posed:
    buffers = int(values["buffers"])
    _, two = waits_needed(two_chunks(buffers))
    _, one = waits_needed(two_chunks(buffers, load=MAIN))
    before, after = one.measures.makespan, two.measures.makespan
    assert before is not None and after is not None
    right = "faster" if after < before else "same" if after == before else "slower"
    because = Both(
        f"一条流 {before:.0f} 微秒，两条流 {after:.0f} 微秒，重叠 {100 * (two.measures.overlap or 0):.0f}%。",
        f"{before:.0f} microseconds on one stream, {after:.0f} on two, with an overlap of "
        f"{100 * (two.measures.overlap or 0):.0f}%.",
    )
    options = (
        (
            "faster",
            Both("更快", "faster"),
            Both("缓冲区只有一个，谁也不能提前。", "With one buffer nobody can be ahead."),
        ),
        ("same", Both("一样", "as fast"), Both("等待本身也要花时间。", "Waits take time of their own.")),
        (
            "slower",
            Both("更慢", "slower"),
            Both("拷贝与计算重叠，省得更多。", "What copy and compute overlap is worth more."),
        ),
    )
    return Posed(
        Both(
            f"同样的两块数据，{buffers} 个缓冲区，该等的都等了。在本章那台虚构的机器上，两条流比全排在一条流上快吗？",
            f"The same two chunks, {buffers} buffer{'s' * (buffers > 1)}, with the waits that it takes. On the "
            "made-up machine of "
            "this chapter, are two streams faster than one?",
        ),
        [Option(key, text, because if key == right else mistake) for key, text, mistake in options],
        right,
    )


WAIT = Both("等待", "waits")
BUFFERS = Slider("buffers", Both("缓冲区", "buffers"), (1, 2), 1)
QUIZ = Quiz(
    "cross-stream-reuse",
    (
        Question(
            "quiz-bytes", (Slider("mib", Both("x 的大小（MiB）", "size of x (MiB)"), (1, 16, 64, 256), 64),), pose_bytes
        ),
        Question(
            "quiz-copy", (Choice("wait", WAIT, {key: WAITS[key] for key in (NEITHER, FIRST)}, NEITHER),), pose_copy
        ),
        Question("quiz-rewrite", (Choice("wait", WAIT, WAITS, FIRST),), pose_rewrite),
        Question("quiz-free", (Choice("mend", Both("改法", "mend"), MENDS, "none"),), pose_free),
        Question("quiz-waits", (BUFFERS,), pose_waits),
        Question("quiz-faster", (BUFFERS,), pose_faster),
    ),
)
