"""The quiz: answers as in the chapters, one at any numbers, and all of them in the page that has no script."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live import gantt, quiz_preemption, quiz_programs, quiz_values
from lab.live.quiz import Reason, by_number
from lab.live.quiz_page import quiz_html
from lab.live.registry import FIGURES, QUESTIONS, QUIZZES, answer
from lab.live.words import Both, same
from lab.sim import LinearCost
from tests.live.settings import any_settings, ends

HAN = re.compile(r"[\u3400-\u9fff]")


def pose(name: str, **setting):
    question = QUESTIONS[name]
    return question.pose({knob.name: knob.default for knob in question.knobs} | setting)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("quiz-gap", "126.94 ms"),
        ("quiz-chunks", "35"),
        ("quiz-short", "122.50 ms"),
        ("quiz-alone", "3"),
        ("quiz-pause", "337.34 ms"),
        ("quiz-throughput", "falls"),
        ("quiz-useful", "23%"),
        ("quiz-fit", "31"),
        ("quiz-closed", "shorter"),
        ("quiz-bytes", "0 MiB"),
        ("quiz-copy", "1, 2"),
        ("quiz-rewrite", "2, 8"),
        ("quiz-free", "2, 8"),
        ("quiz-waits", "3"),
        ("quiz-faster", "slower"),
    ],
)
def test_the_answers_are_those_of_the_chapters(name, right):
    posed = pose(name)
    (option,) = (option for option in posed.options if option.key == posed.right)
    assert option.text.en == right
    assert len(posed.options) >= 3


def test_each_chapter_has_its_questions():
    assert list(QUIZZES) == ["chunked-prefill", "admission-control", "cross-stream-reuse"]
    assert all(len(quiz.questions) >= 4 for quiz in QUIZZES.values())
    assert len(QUESTIONS) == sum(len(quiz.questions) for quiz in QUIZZES.values())
    assert not QUESTIONS.keys() & FIGURES.keys()


def check(name: str, setting: dict) -> None:
    """One right answer among several that differ, the same in both languages, each in its own."""
    replies = {lang: json.loads(answer(name, json.dumps(setting), lang, 680)) for lang in ("zh", "en")}
    keys = {}
    for lang, reply in replies.items():
        closed = re.sub(r"(<input[^>]*)>", r"\1/>", reply["options"])
        options = ET.fromstring(f"<div>{closed}</div>")
        said = ET.fromstring(f"<div>{reply['answer']}</div>")
        keys[lang] = [radio.get("value") for radio in options.iter("input")]
        assert reply["right"] in keys[lang] and len(set(keys[lang])) == len(keys[lang])
        shown = ["".join(label.itertext()).strip() for label in options.iter("label")]
        assert len(set(shown)) == len(shown) >= 2
        right = shown[keys[lang].index(reply["right"])]
        assert "".join(said.find("p").itertext()).startswith(right)
        words = "".join(options.find("p").itertext()) + "".join(said.itertext())
        assert bool(HAN.search(words)) == (lang == "zh")
    assert keys["zh"] == keys["en"] and replies["zh"]["right"] == replies["en"]["right"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_any_numbers_have_one_answer(name):
    for setting in ends(QUESTIONS[name]):
        check(name, setting)
    settings(max_examples=5, deadline=None)(
        given(any_settings(QUESTIONS[name]))(lambda setting: check(name, setting))
    )()


def test_the_answers_follow_the_lab(monkeypatch):
    """None is typed: with another cost, and with a program that lost a wait, they are others."""
    before = {name: pose(name).right for name in ("quiz-gap", "quiz-pause", "quiz-rewrite")}
    monkeypatch.setattr(gantt, "COST", LinearCost(step_ms=7))
    monkeypatch.setattr(quiz_preemption, "COST", LinearCost(step_ms=7))
    monkeypatch.setattr(quiz_programs, "FIRST", "nowhere")
    assert all(pose(name).right != right for name, right in before.items())


def test_a_prompt_shorter_than_a_chunk_is_one_chunk_even_for_who_forgets_the_rest():
    assert [option.key for option in pose("quiz-alone", prompt=100, budget=512).options] == ["1", "4"]


def test_one_is_not_several():
    for setting, right in (({"wait": "none"}, "There are 3 legal"), ({"wait": "after the write"}, "There is 1 legal")):
        posed = pose("quiz-copy", **setting)
        (because,) = (option.because.en for option in posed.options if option.key == posed.right)
        assert because.startswith(f"{right} execution")
    assert "each has 1 decode in it" in pose("quiz-chunks", decoders=1).text.en


def test_waits_rule_out_values_and_the_fewest_leave_one():
    assert [pose("quiz-rewrite", wait=wait).right for wait in quiz_values.WAITS] == ["1, 2, 8", "2, 8", "1, 2", "2"]
    assert pose("quiz-copy", wait="after the write").right == "2"
    assert [pose("quiz-free", mend=mend).right for mend in ("wait", "record_stream")] == ["2", "2"]
    assert [pose("quiz-waits", buffers=buffers).right for buffers in (1, 2)] == ["3", "2"]
    assert pose("quiz-faster", buffers=2).right == "faster"


@given(st.floats(0, 1e6), st.lists(st.floats(0, 1e6), max_size=4))
def test_numbers_stand_in_order_and_the_right_one_has_its_own_reason(right, wrong):
    posed = by_number(
        same("?"),
        lambda x: same(f"{x:.6g}"),
        Reason(right, *same("right")),
        *(Reason(x, *same("wrong")) for x in wrong),
    )
    shown = [float(option.text.en) for option in posed.options]
    assert shown == sorted(shown) and len({option.key for option in posed.options}) == len(shown)
    assert [option.because.en for option in posed.options if option.key == posed.right] == ["right"]
    assert len([option for option in posed.options if option.because.en == "right"]) == 1


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("quiz", QUIZZES.values(), ids=QUIZZES)
def test_the_page_has_questions_and_answers_without_a_script(quiz, lang):
    page = quiz_html(quiz, lang)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and set(re.findall(r'labelledby="([^"]*)"', page)) <= set(ids)
    for question in quiz.questions:
        reply = json.loads(answer(question.name, "{}", lang, 0))
        assert reply["options"] in page
        assert f"<details><summary>{Both('答案', 'Answer').of(lang)}</summary>" in page
        assert reply["answer"] in page[page.index(reply["options"]) :]


@pytest.mark.parametrize("text", ["", '{"budget": "many"}', '{"budgit": 1}', '{"prompt": 1e999}'])
def test_nonsense_is_refused_in_one_line(text):
    reply = json.loads(answer("quiz-gap", text, "en", 0))
    assert set(reply) == {"error"} and "\n" not in reply["error"]
