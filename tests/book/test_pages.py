"""What every generated page must keep to, in both languages."""

import json
import re

import nbformat
import pytest

from tools.settings import LANGUAGES, SOURCES
from tools.source import Code, Prose, headings, read_chapter

NAMES = sorted(path.stem for path in SOURCES.glob("*.md"))
CHAPTERS = {name: read_chapter(SOURCES / f"{name}.md") for name in NAMES}
NOTEBOOKS = [name for name in NAMES if CHAPTERS[name].has_code]
HAN = "\u3400-\u4dbf\u4e00-\u9fff"
COLUMNS = 85
FULL_STOPS = "。，、；：？！（）《》“”…"


def notebook(name: str, lang: str):
    return nbformat.read(SOURCES.parent / lang / f"{name}.ipynb", as_version=4)


def prose(markdown: str) -> str:
    """The passage without code and formulas, so that rules about writing see writing only."""
    for pattern in (r"^```.*?^```", r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"`[^`\n]*`"):
        markdown = re.sub(pattern, "x", markdown, flags=re.S | re.M)
    return markdown


def passages(name: str, lang: str) -> list[str]:
    return [part.text(lang) for part in CHAPTERS[name].parts if isinstance(part, Prose)]


def test_there_are_notebooks():
    assert NOTEBOOKS and "index" in NAMES


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_valid_and_asks_colab_for_a_gpu(name, lang):
    nb = notebook(name, lang)
    nbformat.validate(nb)
    assert "widgets" not in nb.metadata, "GitHub refuses to show notebooks with widget state"
    assert {"device", "threads", "python", "torch", "lab", "date"} == set(nb.metadata.book.run)
    assert nb.metadata.accelerator == "GPU" and nb.metadata.colab.gpuType == "T4"
    assert nb.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_languages_differ_in_prose_only(name):
    zh, en = (notebook(name, lang) for lang in LANGUAGES)
    assert [(c.id, c.cell_type) for c in zh.cells] == [(c.id, c.cell_type) for c in en.cells]
    code_zh, code_en = ([c for c in nb.cells if c.cell_type == "code"] for nb in (zh, en))
    assert [c.id for c in code_zh].index("setup") == 0
    assert [c.source for c in code_zh[1:]] == [c.source for c in code_en[1:]]
    assert code_zh[0].source.replace('"zh"', '"en"') == code_en[0].source != code_zh[0].source


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_anchors_are_one_per_heading_and_shared(name, lang):
    nb = notebook(name, lang)
    found = [title for cell in nb.cells if cell.cell_type == "markdown" for title in headings(cell.source)]
    assert nb.metadata.book.anchors == list(CHAPTERS[name].anchors) and len(found) == len(nb.metadata.book.anchors)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_figure_has_a_description_in_its_own_language(name, lang):
    for cell in notebook(name, lang).cells:
        kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
        if kinds & {"image/png", "image/svg+xml"}:
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) > 10, f"{cell.id}: give alt_zh and alt_en to the cell"
            assert bool(re.search(f"[{HAN}]", alt)) == (lang == "zh"), alt


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_markdown_is_plain(name, lang):
    """Colab and GitHub show MyST directives, roles and labels as raw text."""
    for text in passages(name, lang):
        assert not re.search(r"^:::|^```\{|^\([\w-]+\)=$|\{[\w:-]+\}`", text, re.M), text
        assert not re.search(r"!\[\]\(", text), f"a picture without alt text: {text}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_fits_the_page_and_needs_no_kernel_to_be_seen(name):
    for part in CHAPTERS[name].parts:
        if isinstance(part, Code):
            assert [line for line in part.source.splitlines() if len(line) > COLUMNS] == []
            assert not re.search(r"\binteract\b", part.source), "its controls would be dead on the page"


@pytest.mark.parametrize("name", NAMES)
def test_a_chinese_paragraph_is_one_line(name):
    """A line break between Han characters would be shown as a space."""
    for text in passages(name, "zh"):
        broken = rf"[{HAN}{FULL_STOPS}]\n(?!\d+\. )[{HAN}{FULL_STOPS}\w]"  # an item of a list may follow
        assert not re.search(broken, prose(text)), text


@pytest.mark.parametrize("name", NAMES)
def test_chinese_typography(name):
    for text in map(prose, passages(name, "zh")):
        assert not re.search("[０-９Ａ-Ｚａ-ｚ]", text), "digits and letters are half-width"
        assert not re.search(rf"[{HAN}] +[{HAN}]", text), "a space between Han characters"
        for bold in re.findall(r"\*\*(.+?)\*\*", text):
            assert bold[0] not in FULL_STOPS and bold[-1] not in FULL_STOPS, f"** stays literal here: {bold}"
        assert not re.search(rf"[{HAN}][,;:?!](?=[{HAN}\s]|$)", text, re.M), "ASCII punctuation after a Han character"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "glossary"])  # the glossary names things in both
def test_english_pages_hold_no_chinese(name):
    for text in passages(name, "en"):
        assert not re.search(f"[{HAN}{FULL_STOPS.translate({0x201C: None, 0x201D: None, 0x2026: None})}]", text), text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_hold_nothing_of_the_machine_that_made_them(name):
    for lang in LANGUAGES:
        text = json.dumps(notebook(name, lang))
        assert not re.search(r"/home/|/root/|/tmp/|/Users/|site-packages", text)
