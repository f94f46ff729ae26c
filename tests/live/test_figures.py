"""Every figure at any setting: a picture that can be read, in both languages and widths, or a line that says why."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.figure import NARROW, NEEDED, WIDE
from lab.live.knobs import Slider
from lab.live.registry import FIGURES, answer
from lab.streams.svg import text_width
from tests.live.settings import any_settings, ends

SVG = "{http://www.w3.org/2000/svg}"
HAN = re.compile(r"[\u3400-\u9fff]")
LEGIBLE = 10  # units of a letter, each a pixel of a phone


def ask(name: str, setting: dict, lang: str = "en", width: int = WIDE) -> dict:
    return json.loads(answer(name, json.dumps(setting), lang, width))


def check_picture(svg: str, width: int) -> ET.Element:
    """It parses, has its names for who can't see it, refers to nothing outside, and no text leaves it."""
    root = ET.fromstring(svg)
    assert root.get("viewBox").split()[2] == str(width)
    assert root.get("role") == "img" and root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<style|<image|href|@import", svg)
    for text in root.iter(f"{SVG}text"):
        size = float(text.get("font-size", root.get("font-size")))
        assert size >= LEGIBLE
        x, length = float(text.get("x")), 0.9 * text_width(text.text or "") * size / 12
        left = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor")]
        assert -1 <= left and left + length <= width + 1, text.text
    return root


@pytest.mark.parametrize(("lang", "width"), [("zh", WIDE), ("en", NARROW)])
@pytest.mark.parametrize("name", FIGURES)
def test_every_knob_at_its_ends(name, lang, width):
    for setting in ends(FIGURES[name]):
        reply = ask(name, setting, lang, width)
        if "error" in reply:
            assert "\n" not in reply["error"] and bool(HAN.search(reply["error"])) <= (lang == "zh")
            continue
        check_picture(reply["svg"], width)
        assert setting.items() <= reply["settings"].items()
        words = " ".join([reply["text"], *(label for label, _ in reply["rows"]), *reply["notes"]])
        assert bool(HAN.search(words)) == (lang == "zh")


@pytest.mark.parametrize("name", FIGURES)
def test_any_setting_has_one_answer_in_both_languages_and_widths(name):
    @settings(max_examples=8, deadline=None)
    @given(any_settings(FIGURES[name]))
    def check(setting):
        reply = ask(name, setting)
        if "error" in reply:
            return
        check_picture(reply["svg"], WIDE)
        for lang, width in (("zh", WIDE), ("en", NARROW)):
            other = ask(name, setting, lang, width)
            assert other["numbers"] == reply["numbers"] and other["settings"] == reply["settings"]
            assert len(other["rows"]) == len(reply["rows"]) and len(other["notes"]) == len(reply["notes"])

    check()


@pytest.mark.parametrize("name", FIGURES)
def test_the_setting_that_a_page_shows_first(name):
    reply = ask(name, {})
    assert reply["settings"] == {knob.name: knob.default for knob in FIGURES[name].knobs}
    assert reply["notes"] == [] or name.startswith("streams")  # whose hazards stand there


def test_the_narrow_picture_is_for_narrow_places():
    assert '"0 0 320 ' in ask("gantt", {}, width=NEEDED - 1)["svg"]
    assert '"0 0 680 ' in ask("gantt", {}, width=NEEDED)["svg"]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_knobs_have_names_in_both_languages(name, lang):
    figure = FIGURES[name]
    assert figure.title.of(lang)
    labels = [knob.label.of(lang) for knob in figure.knobs]
    assert len(set(labels)) == len(labels)
    for knob in figure.knobs:
        marks = knob.marks if isinstance(knob, Slider) else list(knob.options)
        assert knob.default in marks
        assert len({knob.shown(mark, lang) for mark in marks}) == len(marks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON object"),
        ("[]", "JSON object"),
        ("[" * 100_000, "JSON object"),
        ("1" * 5000, "JSON object"),
        ('{"budgit": 3}', "budgit"),
        ('{"budget": "many"}', "many"),
        ('{"budget": true}', "True"),
        ('{"budget": null}', "None"),
        ('{"budget": 1e999}', "inf"),
        ('{"budget": NaN}', "nan"),
        ('{"budget": {"a": 1}}', "a number from 64 to 8192"),
        ('{"budget": 1' + 400 * "0" + "}", "a number from 64 to 8192"),
        ('{"policy": "<script>"}', "<script>"),
        ('{"policy": 3}', "choose from vllm"),
    ],
)
def test_nonsense_is_refused_in_one_line(text, said):
    for lang in ("zh", "en"):
        reply = json.loads(answer("gantt", text, lang, WIDE))
        assert set(reply) == {"error"} and len(reply["error"]) < 200 and "\n" not in reply["error"]
        assert bool(HAN.search(reply["error"])) == (lang == "zh")
    assert said in reply["error"]


@given(st.text(max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_it(text):
    assert json.loads(answer("gantt", text, "en", WIDE)).keys() & {"error", "svg"}
    assert json.loads(answer("gantt", json.dumps({"budget": text}), "zh", WIDE)).keys() & {"error", "svg"}


@pytest.mark.parametrize(
    ("asked", "nearest"), [(1, 64), (100, 128), (500.5, 512), (10**9, 8192), (-5, 64), ("500", 512)]
)
def test_a_number_off_the_slider_goes_to_the_nearest_and_says_so(asked, nearest):
    reply = ask("gantt", {"budget": asked})
    assert reply["settings"]["budget"] == nearest
    (note,) = reply["notes"]
    assert str(asked) in note and str(nearest) in note
    assert ask("gantt", {"budget": str(nearest)})["notes"] == []


def test_names_that_are_not_there():
    assert "choose from gantt" in ask("gant", {})["error"]
    assert "choose from zh, en" in ask("gantt", {}, lang="fr")["error"]


@pytest.mark.parametrize(
    "fault",
    [
        ('viewBox="0 0 680', 'viewBox="0 0 600'),
        ("<desc>", "<desc/><old>"),
        ('font-size="12"', 'font-size="9"'),
        ("</svg>", '<text x="670" y="9" text-anchor="start">off the edge</text></svg>'),
        ("</svg>", '<text x="5" y="9" text-anchor="start">5 < 6</text></svg>'),
        ("</svg>", '<image x="0" y="0"/></svg>'),
        ("currentColor", "url(https://example.org/ink)"),
    ],
)
def test_the_check_of_a_picture_sees(fault):
    svg = ask("gantt", {})["svg"]
    broken = svg.replace(*fault).replace("</desc>", "</desc>" if fault[0] != "<desc>" else "</old>")
    assert broken != svg
    with pytest.raises((AssertionError, ET.ParseError, AttributeError)):
        check_picture(broken, WIDE)
