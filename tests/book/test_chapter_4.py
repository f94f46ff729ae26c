"""What chapter 4 says in words is what its cells print."""

import re

import nbformat
import pytest

from tools.settings import LANGUAGES, SOURCES

FIGURES = {  # in the text, and the line of the outputs that it is from
    "193": r"^naive +275 +534 .* 193 ",
    "3.27": r"^budget 1024: .* step 3\.27 ",
    "8230": r"^ 0\.6 s +0 +1930 .* 8230 ",
    "278": r"^chunk 128 +73 +327 .* 278 ",
    "444": r"^threshold +113 +444 .* 161 ",
    "284": r"^seqs 8 +99 +284 .* 8 ",
    "245": r"^swap, 64 +70 +289 .* 245 ",
    "582": r"^ +swap, 64: .* gap 582 ms",
    "3181": r"^the same 3,181 greedy tokens under all 6 settings",
    "3.69": r"^chunk 1024: .* gap 3\.69 s",
    "0.12": r"^ +seqs 32: .* gap 0\.12 s",
    "18%": r"margin 18%",
}


@pytest.fixture(params=LANGUAGES)
def cells(request):
    return nbformat.read(SOURCES.parent / request.param / "04-one-engine.ipynb", as_version=4).cells


def printed(cells) -> str:
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))


def test_the_figures_of_the_text_are_in_the_outputs(cells):
    text = "".join(cell.source for cell in cells if cell.cell_type == "markdown").replace(",", "")
    out = printed(cells)
    for figure, line in FIGURES.items():
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", text), f"{figure} is no longer in the text"
        assert re.search(line, out, re.M), f"{figure} is no longer what is printed"


def test_the_answers_of_the_exercises_are_what_the_cell_says(cells):
    (answers,) = (cell.source for cell in cells if "<details>" in cell.source)
    written = dict(re.findall(r"^(\d)\. (.+)$", answers.split("<details>")[1], re.M))
    found = dict(re.findall(r"^(\d): (.+)$", printed(cells[-2:]), re.M))
    assert len(found) == 8 and written.keys() == found.keys()
    for number, answer in found.items():
        assert answer in written[number], (number, answer, written[number])
