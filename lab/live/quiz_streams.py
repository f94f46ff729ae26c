"""Chapter 3: what has to be copied and what has to wait, and what it is worth; quiz_values has what may go wrong."""

from functools import partial

from lab.live.knobs import Choice, Slider, Values
from lab.live.quiz import Option, Posed, Question, Quiz, Reason, by_name, by_number, whole
from lab.live.quiz_programs import FIRST, NEITHER, WANT, hand_over, two_chunks, waits_needed
from lab.live.quiz_values import MENDS, WAITS, pose_copy, pose_free, pose_rewrite
from lab.live.words import Both, counted, same
from lab.streams.runtime import ITEM_BYTES, MAIN
from lab.streams.verdict import examine

MIB = 2**20 // ITEM_BYTES  # elements


def pose_bytes(values: Values) -> Posed:
    mib = int(values["mib"])

    def copied(copies: bool) -> int:
        verdict = examine(partial(hand_over, numel=mib * MIB, wait=FIRST, copies=copies), WANT)
        assert verdict.right and not verdict.hazards
        return verdict.measures.device_bytes // 2**20

    return by_number(
        Both(
            f"主流算出 {mib} MiB 的 x，交给另一条流去用。至少要在显存里复制多少 MiB？",
            f"The main stream computes x, {mib} MiB, and another stream is to use it. "
            "How many MiB must be copied in device memory at the least?",
        ),
        lambda n: same(f"{n:.0f} MiB"),
        Reason(
            copied(False),
            "所有的流共用一个地址空间，欠下的只是次序：一个事件就够，检查器没有发现隐患。",
            "All streams share one address space; what is owed is the order. An event is enough, "
            "and the checker finds no hazard.",
        ),
        Reason(
            copied(True),
            "复制一份也对，但也要先等；等了就不必复制。",
            "A copy is right too, but has to wait as well, and then serves no purpose.",
        ),
        Reason(2 * copied(True), "那是复制一份时读写的字节。", "That is what a copy reads and writes."),
    )


def pose_waits(values: Values) -> Posed:
    buffers = int(values["buffers"])
    program = two_chunks(buffers)
    waits, _ = waits_needed(program)
    zh = "，".join(f"{j + 1} 等 {i + 1}" for i, j in waits)
    en = ", ".join(f"{j + 1} for {i + 1}" for i, j in waits)
    return by_number(
        Both(
            f"两块数据，{buffers} 个缓冲区：load 流拷进来，main 流加到 y 上，一块接一块。"
            "两条流之间，最少要几次等待才没有隐患？",
            f"Two chunks, {counted(buffers, 'buffer')}: the stream load copies one in, main adds it to y, "
            "chunk after chunk. How many waits between the streams does it take at the least, for no hazard to be "
            "left?",
        ),
        whole("次"),
        Reason(
            len(waits),
            f"所有组合都试过。四个操作按排入的先后编号，{zh}。",
            f"All combinations were tried. With the four operations numbered as they are enqueued: {en}.",
        ),
        Reason(
            2,
            "那只顾到先写后读，改写之前也要等读完。",
            "That is read after write only; a rewrite has to wait for the read too.",
        ),
        Reason(1, "每块都要等。", "Each chunk has to be waited for."),
        Reason(3, "缓冲区够用，就不必等读完。", "With buffers enough nothing needs to wait for a read."),
        Reason(
            len(program.operations()),
            "同一条流上的先后不用等。",
            "Inside a stream the order is there without a wait.",
        ),
    )


SPEEDS = [
    Option(
        "faster", Both("更快", "faster"), Both("缓冲区只有一个，谁也不能提前。", "With one buffer nobody can be ahead.")
    ),
    Option("same", Both("一样", "as fast"), Both("等待本身也要花时间。", "Waits take time of their own.")),
    Option(
        "slower",
        Both("更慢", "slower"),
        Both("拷贝与计算重叠，省得更多。", "What copy and compute overlap is worth more."),
    ),
]


def pose_faster(values: Values) -> Posed:
    buffers = int(values["buffers"])
    _, two = waits_needed(two_chunks(buffers))
    _, one = waits_needed(two_chunks(buffers, load=MAIN))
    before, after = one.measures.makespan, two.measures.makespan
    assert before is not None and after is not None
    overlap = f"{100 * (two.measures.overlap or 0):.0f}%"
    return by_name(
        Both(
            f"同样的两块数据，{buffers} 个缓冲区，该等的都等了。在本章那台虚构的机器上，两条流比全排在一条流上快吗？",
            f"The same two chunks, {counted(buffers, 'buffer')}, with the waits that it takes. "
            "On the made-up machine of this chapter, are two streams faster than one?",
        ),
        SPEEDS,
        "faster" if after < before else "same" if after == before else "slower",
        Both(
            f"一条流 {before:.0f} 微秒，两条流 {after:.0f} 微秒，重叠 {overlap}。",
            f"{before:.0f} microseconds on one stream, {after:.0f} on two, with an overlap of {overlap}.",
        ),
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
