"""What hazards are called and how they are explained, in both languages."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from lab.streams.races import Hazard, Kind, Op
from lab.streams.runtime import HOST

Lang = Literal["zh", "en"]

NAMES: dict[Kind, dict[Lang, str]] = {
    Kind.READ_AFTER_WRITE: {"zh": "写后读", "en": "read after write"},
    Kind.WRITE_AFTER_WRITE: {"zh": "写后写", "en": "write after write"},
    Kind.WRITE_AFTER_READ: {"zh": "读后写", "en": "write after read"},
    Kind.USE_AFTER_FREE: {"zh": "释放后仍在用", "en": "use after free"},
    Kind.FREED_EARLY: {"zh": "释放过早", "en": "freed too early"},
    Kind.TOUCHED_EARLY: {"zh": "使用过早", "en": "touched too early"},
}

HAPPENED: dict[Kind, dict[Lang, str]] = {
    Kind.READ_AFTER_WRITE: {
        "zh": "{second}读 {tensor}，而 {first}可能还没写完",
        "en": "{second} reads {tensor}, and {first} may not have written it yet",
    },
    Kind.WRITE_AFTER_WRITE: {
        "zh": "{second}写 {tensor}，而 {first}可能之后才写",
        "en": "{second} writes {tensor}, and {first} may write it later",
    },
    Kind.WRITE_AFTER_READ: {
        "zh": "{second}改写 {tensor}，而 {first}可能还没读完",
        "en": "{second} writes {tensor}, and {first} may not have read it yet",
    },
    Kind.USE_AFTER_FREE: {
        "zh": "{second}用的字节原属 {tensor}，已分给 {new}，而 {first}可能还在用",
        "en": "{second} uses bytes that were {tensor}'s and are {new}'s now, and {first} may still use them",
    },
    Kind.FREED_EARLY: {
        "zh": "{second}，而 {first}可能还在用它",
        "en": "{second}, and {first} may still use it",
    },
    Kind.TOUCHED_EARLY: {
        "zh": "{second}使用 {tensor}，却没排在 {first}之后，那些字节的旧主人可能还没用完",
        "en": "{second} uses {tensor} without coming after {first}, so the bytes may still be in their old owner's use",
    },
}

MISSING: dict[Lang, str] = {
    "zh": "缺的边：{before} 在它之后记录事件，{after} 等待",
    "en": "missing edge: an event recorded on {before} after the first, and a wait on {after} before the second",
}
OR_RECORD: dict[Lang, str] = {"zh": "（或者 record_stream）", "en": " (or record_stream)"}
SENTENCE: dict[Lang, str] = {"zh": "{name}：{happened}；{missing}", "en": "{name}: {happened}; {missing}"}
COMMA: dict[Lang, str] = {"zh": "、", "en": ", "}


def kinds_of(hazards: Iterable[Hazard], lang: Lang) -> str:
    """The names of their kinds, each once; empty if there are none."""
    return COMMA[lang].join(dict.fromkeys(NAMES[hazard.kind][lang] for hazard in hazards))


def where(op: Op, lang: Lang) -> str:
    """An operation as a reader finds it: what, on which stream, in which line."""
    actor = {"zh": "主机", "en": "host"}[lang] if op.stream == HOST else op.stream
    place = f"{Path(op.line.file).name}:{op.line.number}"
    if "ipykernel" in op.line.file:  # a notebook's cell, whose file is named by a hash
        place = {"zh": f"第 {op.line.number} 行", "en": f"line {op.line.number}"}[lang]
    return {"zh": f"`{op.label}`（{actor}，{place}）", "en": f"`{op.label}` ({actor}, {place})"}[lang]


def explain(hazard: Hazard, lang: Lang = "en", place: Callable[[Op, Lang], str] = where) -> str:
    """One line: the kind, the two operations as `place` has them, and the edge that is missing between them."""
    happened = HAPPENED[hazard.kind][lang].format(
        first=place(hazard.first, lang),
        second=place(hazard.second, lang),
        tensor=hazard.first_tensor,
        new=hazard.second_tensor,
    )
    missing = MISSING[lang].format(before=hazard.first.stream, after=hazard.second.stream)
    if hazard.kind is Kind.FREED_EARLY:
        missing += OR_RECORD[lang]
    return SENTENCE[lang].format(name=NAMES[hazard.kind][lang], happened=happened, missing=missing)
