"""The PDF of each language, printed by Chromium: headings, characters, formulas' fonts and figures are in it."""

import re
import unicodedata
import zlib

import nbformat
import pytest

from tools.build_pdf import print_book
from tools.settings import LANGUAGES, SOURCES, pages
from tools.source import Prose, headings, read_chapter

CHAPTERS = [read_chapter(SOURCES / f"{name}.md") for name in pages()]
FIGURES = ("image/png", "image/svg+xml")


@pytest.fixture(scope="module")
def pdfs(browser) -> dict[str, bytes]:
    return {lang: path.read_bytes() for lang, path in print_book(browser).items()}


def outline(pdf: bytes) -> set[str]:
    """The titles of the outline, without spaces."""
    titles = set()
    for raw in re.findall(rb"/Title\s*(<[0-9A-Fa-f]+>|\((?:\\.|[^()\\])*\))", pdf):
        if raw.startswith(b"<"):
            title = bytes.fromhex(raw[1:-1].decode()).removeprefix(b"\xfe\xff").decode("utf-16-be")
        else:
            title = re.sub(rb"\\(.)", rb"\1", raw[1:-1]).decode("latin-1")
        titles.add(re.sub(r"^(\d+\.)+", "", said_once(title)).replace("’", "'"))
    return titles


def said_once(title: str) -> str:
    """Without spaces, and without what comes twice in a row: so Chromium writes a heading that it breaks, or a line."""
    return re.sub(r"^(.+)\1$|(.{3,})\2", r"\1\2", re.sub(r"\s", "", title))


def characters(pdf: bytes) -> set[str]:
    """The characters that the fonts of the PDF map their glyphs to: one drawn as an empty box has none."""
    found = set()
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.S):
        try:
            text = zlib.decompress(stream)
        except zlib.error:
            continue
        for block in re.findall(rb"beginbfchar(.*?)endbfchar", text, re.S):
            found |= {_character(code) for code in re.findall(rb"<\w+> <(\w+)>", block)}
        for block in re.findall(rb"beginbfrange(.*?)endbfrange", text, re.S):
            for first, last, code in re.findall(rb"<(\w+)> <(\w+)> <(\w+)>", block):
                found |= {chr(int(code, 16) + n) for n in range(int(last, 16) - int(first, 16) + 1)}
    return found


def _character(code: bytes) -> str:
    return bytes.fromhex(code.decode()).decode("utf-16-be", "replace")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_heading_is_in_the_outline(pdfs, lang):
    parts = [part for chapter in CHAPTERS for part in chapter.parts if isinstance(part, Prose)]
    expected = {said_once(title) for part in parts for _, title in headings(part.text(lang))}
    assert expected <= outline(pdfs[lang])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_characters_of_the_text_are_there(pdfs, lang):
    """All but a few: Chromium maps some Han glyphs to radicals of the same shape, not all of which NFKC undoes."""
    parts = [part for chapter in CHAPTERS for part in chapter.parts]
    text = "".join(part.text(lang) if isinstance(part, Prose) else part.source for part in parts)
    text = re.sub(r"\$.*?\$", "", text, flags=re.S)
    expected = set(re.findall(r"[\w，。：；、“”]", text))
    found = characters(pdfs[lang])
    lacking = expected - found - set(unicodedata.normalize("NFKC", "".join(found)))
    assert len(lacking) < len(expected) / 50, lacking
    assert b"MJX" in pdfs[lang] or b"MathJax" in pdfs[lang], "no font of MathJax: the formulas are not drawn"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_figure_is_in_it(pdfs, lang):
    paths = [SOURCES.parent / lang / f"{chapter.name}.ipynb" for chapter in CHAPTERS if chapter.has_code]
    cells = [cell for path in paths for cell in nbformat.read(path, as_version=4).cells]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    figures = sum(any(kind in output.get("data", {}) for kind in FIGURES) for output in outputs)
    assert figures > 0
    assert len(re.findall(rb"/Subtype\s*/Image\b", pdfs[lang])) >= figures
