"""Hazards in words: both languages, the lines of the program, and the edge that is missing."""

import re

import pytest

from lab.streams.model import ModelRuntime
from lab.streams.programs import PROGRAMS, find
from lab.streams.races import Kind
from lab.streams.runtime import Runtime
from lab.streams.verdict import examine
from lab.streams.words import HAPPENED, NAMES, explain


def two_lines(rt: Runtime) -> None:
    x = rt.full(4, 0, "x")
    rt.synchronize()
    rt.fill(x, 1)
    rt.add(x, x, 1, on="side")


def test_the_two_lines_are_those_of_the_program():
    (hazard,) = examine(two_lines).hazards
    first = two_lines.__code__.co_firstlineno + 3
    assert (hazard.first.line.number, hazard.second.line.number) == (first, first + 1)
    assert hazard.first.line.file == hazard.second.line.file == __file__
    assert explain(hazard) == (
        f"read after write: `x = x + 1` (side, test_words.py:{first + 1}) reads x, and `x = 1` (main, test_words.py:"
        f"{first}) may not have written it yet; missing edge: an event recorded on main after the first, and a wait on "
        "side before the second"
    )


def test_helpers_of_the_protocol_are_not_the_programs_lines():
    def program(rt: Runtime) -> None:
        rt.full(4, 0, "x")

    rt = ModelRuntime()
    program(rt)
    assert {x.op.line.number for x in rt.trace.launched} == {program.__code__.co_firstlineno + 1}


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_explained_in_both_languages(kind):
    runs = [examine(variant.run) for program in PROGRAMS.values() for variant in program.variants]
    hazard = next(hazard for run in runs for hazard in run.hazards if hazard.kind is kind)
    zh, en = explain(hazard, "zh"), explain(hazard, "en")
    assert zh.startswith(NAMES[kind]["zh"]) and en.startswith(NAMES[kind]["en"])
    assert not re.search("[:;] ", zh), "Chinese has marks of its own"
    for text in (zh, en):
        assert hazard.first.label in text and hazard.second.label in text and "{" not in text
    zh_names, en_names = (set(re.findall(r"\{\w+\}", HAPPENED[kind][lang])) for lang in ("zh", "en"))
    assert zh_names == en_names >= {"{first}", "{second}"}
    assert ("record_stream" in en) == ("record_stream" in zh) == (kind is Kind.FREED_EARLY)


def test_the_host_has_a_name_in_either_language():
    (hazard,) = examine(find("d2h_read").variant("broken").run).hazards
    assert "（主机，host.py:" in explain(hazard, "zh") and "(host, host.py:" in explain(hazard)


def test_a_cell_of_a_notebook_is_known_by_its_line_alone():
    code = "def program(rt):\n    x = rt.full(4, 0, 'x')\n    rt.fill(x, 1, on='side')\n"
    scope: dict = {}
    exec(compile(code, "ipykernel_7/123.py", "exec"), scope)
    (hazard,) = examine(scope["program"]).hazards
    assert "(side, line 3)" in explain(hazard) and "（side，第 3 行）" in explain(hazard, "zh")
    assert "123.py" not in explain(hazard)
