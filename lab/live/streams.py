"""Chapter 3: lanes and memory of a stream program, with the waits that the reader puts in."""

from collections.abc import Iterator
from functools import partial

from lab.core.errors import ConfigError
from lab.live.figure import Figure, Shown, plain
from lab.live.knobs import Choice, Values
from lab.live.stream_programs import PROGRAMS, Editable, Operation
from lab.live.words import Both, Lang, counted, same
from lab.streams.model import ModelRuntime
from lab.streams.picture import draw
from lab.streams.races import Op
from lab.streams.runtime import HOST
from lab.streams.verdict import Verdict, examine
from lab.streams.words import explain, kinds_of

NUM_WAITS = 3
NONE = "none"


def knobs_of(operations: list[Operation]) -> Iterator[Choice]:
    """For each wait, the operation to wait for and the one that waits; all of them are without at first."""
    options = {str(i): same(f"{i}. {op.name} ({op.stream})") for i, op in enumerate(operations, start=1)}
    options = {NONE: Both("无", "none"), **options}
    for i in range(1, NUM_WAITS + 1):
        yield Choice(f"after{i}", Both(f"等待 {i}：等谁", f"wait {i}: for the end of"), options, NONE)
        yield Choice(f"before{i}", Both(f"等待 {i}：谁来等", f"wait {i}: before"), options, NONE)


def waits_of(values: Values, lang: Lang) -> list[tuple[int, int]]:
    """Raises ConfigError for half a wait, and for an operation that waits for itself."""
    waits = []
    for i in range(1, NUM_WAITS + 1):
        after, before = str(values[f"after{i}"]), str(values[f"before{i}"])
        if (after == NONE) != (before == NONE):
            missing = Both(f"等待 {i} 只选了一头，请把另一头也选上", f"wait {i} has one end only; choose the other")
            raise ConfigError(missing.of(lang))
        if after == before != NONE:
            itself = Both(f"等待 {i} 的两头是同一个操作", f"wait {i} has one operation at both ends")
            raise ConfigError(itself.of(lang))
        if after != NONE:
            waits.append((int(after) - 1, int(before) - 1))
    return waits


def show(program: Editable, values: Values, lang: Lang, width: int) -> Shown:
    """Raises ConfigError for waits that make no sense."""
    waits, rt = waits_of(values, lang), ModelRuntime()
    verdict = examine(partial(program.run_with, waits=waits), program.want, rt)
    rows = [(label.of(lang), value.of(lang)) for label, value in rows_of(verdict, program.want)]
    text = sentence(verdict, lang)
    picture = with_own_ids(draw([("", rt.trace)], lang, width, text), f"{program.name}-{width}")
    kinds = [hazard.kind for hazard in verdict.hazards]
    numbers = {"value": verdict.value, "hazards": kinds, "measures": verdict.measures}
    hazards = [explain(hazard, lang, where) for hazard in verdict.hazards]
    return Shown(picture, text, rows, plain(numbers), [*hazards, *(note.of(lang) for note in notes_of(waits))])


def where(op: Op, lang: Lang) -> str:
    actor = Both("主机", "host").of(lang) if op.stream == HOST else op.stream
    return Both(f"“{op.label}”（{actor}）", f"“{op.label}” ({actor})").of(lang)


def rows_of(verdict: Verdict, want: float) -> Iterator[tuple[Both, Both]]:
    value, m = f"{verdict.value:g}", verdict.measures
    yield Both("这次得到", "value this time"), same(value if verdict.right else f"{value} ≠ {want:g}")
    yield Both("隐患", "hazards"), same(str(len(verdict.hazards)))
    yield Both("总时长", "all in all"), Both(f"{m.makespan:.0f} 微秒", f"{m.makespan:.0f} microseconds")
    yield Both("重叠", "overlap"), same(f"{100 * (m.overlap or 0):.0f} %")


def sentence(verdict: Verdict, lang: Lang) -> str:
    n, us = len(verdict.hazards), f"{verdict.measures.makespan:.0f}"
    if not n:
        return Both(f"没有隐患，总时长 {us} 微秒。", f"No hazard; {us} microseconds in all.").of(lang)
    kinds = kinds_of(verdict.hazards, lang)
    zh, en = ("碰巧算对了", "right by luck") if verdict.right else ("算错了", "wrong")
    return Both(
        f"{n} 处隐患（{kinds}），这次{zh}。", f"{counted(n, 'hazard')} ({kinds}); the value is {en} this time."
    ).of(lang)


def notes_of(waits: list[tuple[int, int]]) -> Iterator[Both]:
    for after, before in waits:
        if after > before:
            yield Both(
                f"操作 {before + 1} 去等时，操作 {after + 1} 之后的事件还没有记录过，这样的等待等于没有。",
                f"When operation {before + 1} waits, the event behind operation {after + 1} has never been recorded: "
                "that is no wait.",
            )


def with_own_ids(picture: str, prefix: str) -> str:
    """Pictures in one page must not share ids."""
    for name in ("arrow", "blocked", "hazard"):
        picture = picture.replace(f'id="{name}"', f'id="{prefix}-{name}"')
        picture = picture.replace(f"url(#{name})", f"url(#{prefix}-{name})")
    return picture


FIGURES = tuple(
    Figure(f"streams-{program.name}", program.title, tuple(knobs_of(program.operations())), partial(show, program))
    for program in PROGRAMS
)
