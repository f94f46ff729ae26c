"""The picture: well formed, complete, and with text that can be read."""

import re
import xml.etree.ElementTree as ET

import pytest

from lab.streams.model import ModelRuntime
from lab.streams.picture import draw
from lab.streams.programs import PROGRAMS, find
from lab.streams.scale import WIDTH, Scale
from lab.streams.svg import ON_DARK, PAPER, RED, dark_rules, stand_alone, text_width

SVG = "{http://www.w3.org/2000/svg}"


def picture(program: str, *variants: str, lang="en") -> ET.Element:
    panels = []
    for name in variants:
        rt = ModelRuntime()
        find(program).variant(name).run(rt)
        panels.append((f"{program}: {name}", rt.trace))
    return ET.fromstring(draw(panels, lang))


def texts(root: ET.Element) -> list[str]:
    return [element.text for element in root.iter(f"{SVG}text")]


def count(root: ET.Element, name: str, value: str) -> int:
    return sum(element.get(name) == value for element in root.iter())


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p != "graph"])
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_program_can_be_drawn_within_the_page(program, lang):
    names = [variant.name for variant in PROGRAMS[program].variants]
    root = picture(program, *names, lang=lang)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == WIDTH
    for element in root.iter():
        if element.tag == f"{SVG}rect" and element.get("x"):
            assert 0 <= float(element.get("x")) <= width and 0 <= float(element.get("y")) <= height
        if element.tag == f"{SVG}text":
            assert 0 < float(element.get("y")) < height
    assert set(names) <= {text.split(": ")[-1] for text in texts(root)}


def test_a_hazard_is_red_and_its_mended_twin_is_not():
    broken, mended = picture("raw", "broken"), picture("raw", "event")
    assert count(broken, "fill", "url(#hazard)") == 2
    assert count(broken, "stroke-dasharray", "5 3") == 1
    assert "read after write" in texts(broken)
    assert count(mended, "fill", "url(#hazard)") == count(mended, "stroke-dasharray", "5 3") == 0
    assert [sum(e.get("fill") == RED for e in root.iter(f"{SVG}text")) for root in (broken, mended)] == [1, 0]
    assert count(mended, "marker-end", "url(#arrow)") == 1
    assert count(broken, "marker-end", "url(#arrow)") == 0


def test_both_languages_say_the_same():
    zh, en = texts(picture("free_early", "broken", lang="zh")), texts(picture("free_early", "broken"))
    assert len(zh) == len(en)
    assert "主机" in zh and "host" in en and "释放过早、释放后仍在用" in zh and "freed too early, use after free" in en
    assert not re.search("[\u4e00-\u9fff]", "".join(en))


def test_the_ribbon_shows_one_owner_after_the_other_in_the_same_band():
    root = picture("free_early", "broken")
    pale = [e for e in root.iter(f"{SVG}rect") if e.get("fill-opacity")]
    x, z = (next(e for e in pale if e.find(f"{SVG}title").text == name) for name in "xz")
    assert x.get("y") == z.get("y") and float(x.get("x")) + float(x.get("width")) <= float(z.get("x")) + 0.1
    other = picture("free_early", "record-stream")
    x, z = (
        next(e for e in other.iter(f"{SVG}rect") if e.get("fill-opacity") and e.find(f"{SVG}title").text == n)
        for n in "xz"
    )
    assert x.get("y") != z.get("y")


def test_labels_of_one_lane_do_not_run_into_one_another():
    for program, variant in (("growth", "record-stream"), ("pipeline", "two-buffers"), ("launch_bound", "short")):
        root = picture(program, variant)
        lines: dict[str, list[tuple[float, str]]] = {}
        for element in root.iter(f"{SVG}text"):
            if element.get("paint-order"):
                lines.setdefault(element.get("y"), []).append((float(element.get("x")), element.text))
        assert lines
        for line in lines.values():
            for (x, label), (following, _) in zip(sorted(line), sorted(line)[1:]):
                assert x + text_width(label) < following


@pytest.mark.parametrize("span", [1, 9, 10, 405, 12_345, 9e9])
def test_ticks_are_few_and_round(span):
    ticks = Scale(0, span).ticks()
    assert 2 <= len(ticks) <= 10 and ticks[0] == 0 and ticks[-1] <= span
    assert int(str(ticks[1]).rstrip("0")) in (1, 2, 5)


def test_names_are_escaped():
    rt = ModelRuntime()
    with rt.measured():
        rt.full(4, 1, "<b>&\"'")
    assert any("<b>&" in text for text in texts(ET.fromstring(draw([("a < b", rt.trace)]))))


def test_a_run_without_anything_can_be_drawn():
    assert "host" in texts(ET.fromstring(draw([("nothing", ModelRuntime().trace)])))


COLOR = re.compile(r"#[0-9a-f]{3,6}\b")


def luminance(color: str) -> float:
    """As in WCAG 2.2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_letters_can_be_read_on_both_papers():
    for paper, letters in ((PAPER, [RED, "#222222"]), (ON_DARK[PAPER], [ON_DARK[RED], "#ced6dd"])):
        assert all(contrast(paper, color) >= 4.5 for color in letters)


def test_a_picture_in_a_page_takes_the_pages_colours_and_one_that_stands_alone_has_its_own():
    rt = ModelRuntime()
    find("raw").variant("broken").run(rt)
    inside = draw([("raw", rt.trace)])
    assert "<style" not in inside and PAPER not in re.sub(r'stroke="[^"]*"', "", inside)
    alone = stand_alone(inside)
    assert all(rule in alone for rule in dark_rules()) and f'height="100%" fill="{PAPER}"' in alone
    ET.fromstring(alone)


def test_each_grey_and_pale_colour_has_another_for_the_dark():
    """Light colours would glare there; what is left as it is must be seen on both papers."""
    for name in ("raw", "free_early", "pipeline", "growth"):
        rt = ModelRuntime()
        PROGRAMS[name].variants[0].run(rt)
        for color in set(COLOR.findall(draw([("", rt.trace)]))) - set(ON_DARK):
            assert all(contrast(color, paper) >= 2 for paper in (PAPER, ON_DARK[PAPER])), color
