"""What chapter 3 says in words is what its cells print."""

import re

import nbformat
import pytest

from tools.settings import LANGUAGES, SOURCES


@pytest.fixture(params=LANGUAGES)
def cells(request):
    return nbformat.read(SOURCES.parent / request.param / "03-cross-stream-reuse.ipynb", as_version=4).cells


def printed(cells) -> str:
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))


def test_the_answers_of_the_exercises_are_the_checkers(cells):
    (answers,) = (cell.source for cell in cells if "<details>" in cell.source)
    written = dict(re.findall(r"^\| ([a-j]) \| (.+?) \|", answers, re.M))
    found = dict(re.findall(r"^([a-j]) (\w+(?: -> \w+)?)$", printed(cells[-1:]), re.M))
    assert len(written) == 10 and written == found


def test_the_figures_of_the_text_are_in_the_outputs(cells):
    text = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    out = printed(cells)
    for named, line in {
        "300": r"^ +host +2 +yes +0 +\d+ +300 ",
        "0.98": r"^sm_full +full +0\.98 +0\.\d+",
        "1.48": r"^launch_bound +graph +\S+ +1\.48",
    }.items():
        assert re.search(rf"(?<![\d.,]){re.escape(named)}(?![\d,])", text) and re.search(line, out, re.M), named
