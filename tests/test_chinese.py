"""Chinese has marks of its own: no half-width one stands beside a Chinese character, in the lab's source or in what it
says."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.live.registry import FIGURES, QUESTIONS, answer
from lab.streams.programs import PROGRAMS
from lab.streams.verdict import examine
from lab.streams.words import explain

LAB = Path(__file__).parent.parent / "lab"
HAN, MARKS = "一-鿿", "，。；：？！（）、"
HALF_WIDTH = re.compile(f"[{HAN}{MARKS}] ?[,;:?!()]|[,;:?!()] ?[{HAN}{MARKS}]")
VALUE = "值"  # stands for what is filled in, which may be Chinese
SOURCES = {str(path.relative_to(LAB)): path for path in LAB.rglob("*.py") if re.search(f"[{HAN}]", path.read_text())}


def chinese(source: str) -> Iterator[str]:
    """The texts in it that hold Chinese, or marks of it, as they read once their fields are filled in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if re.search(f"[{HAN}{MARKS}]", text):
            yield re.sub(r"\{[^{}]*\}", VALUE, text)


@pytest.mark.parametrize("name", SOURCES)
def test_in_the_source(name: str) -> None:
    texts = list(chinese(SOURCES[name].read_text()))
    assert texts
    assert [text for text in texts if HALF_WIDTH.search(text)] == []


def test_where_chinese_is_looked_for() -> None:
    assert {"streams/words.py", "live/console.py", "live/region_words.py", "show/requests.py"} <= SOURCES.keys()


@pytest.mark.parametrize(
    "right, planted",
    [
        ('"zh": "{second}读 {tensor}，而', '"zh": "{second}读 {tensor}, 而'),
        ("（{actor}，{place}）", " ({actor}，{place}）"),
        ("（{actor}，{place}）", "（{actor}, {place}）"),
        ("{name}：{happened}；{missing}", "{name}: {happened}；{missing}"),
        ("{name}：{happened}；{missing}", "{name}：{happened}; {missing}"),
        ("写后读", "写后读?"),
        ("（或者 record_stream）", "(或者 record_stream)"),
    ],
)
def test_a_half_width_mark_is_found(right: str, planted: str) -> None:
    source = SOURCES["streams/words.py"].read_text()
    assert right in source
    assert any(HALF_WIDTH.search(text) for text in chinese(source.replace(right, planted)))


@pytest.mark.parametrize("text", ["释放之前 x.record_stream(side)", "第 3 行，`f(x, y)` 慢", "9 块（2,048 个词元）"])
def test_code_and_numbers_keep_theirs(text: str) -> None:
    assert not HALF_WIDTH.search(text)


def test_in_what_is_said_of_hazards() -> None:
    runs = [examine(variant.run) for program in PROGRAMS.values() for variant in program.variants]
    said = {explain(hazard, "zh") for run in runs for hazard in run.hazards}
    assert len(said) > 20 and [text for text in said if HALF_WIDTH.search(text)] == []


@pytest.mark.parametrize("name", [*FIGURES, *QUESTIONS])
def test_in_what_a_figure_or_a_question_says(name: str) -> None:
    reply = json.loads(answer(name, "{}", "zh", 680))
    said = [reply.get("text", ""), *reply["notes"], *sum(reply.get("rows", []), [])]
    said += re.sub(r"<code>.*?</code>|<[^>]*>", "", reply.get("options", "") + reply.get("answer", "")).splitlines()
    assert any(re.search(f"[{HAN}]", text) for text in said)
    assert [text for text in said if HALF_WIDTH.search(text)] == []
