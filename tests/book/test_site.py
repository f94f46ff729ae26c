"""The two built sites, read as files: nothing missing, nothing from another host, the languages step for step."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from tools.settings import LANGUAGES, SOURCES, Address, load_config
from tools.settings import pages as page_names
from tools.source import Prose, read_chapter
from tools.sphinx_book import HAN

ADDRESS = Address.from_config(load_config())
NAMES = page_names()
CODES = {"zh": "zh-CN", "en": "en"}


class Page:
    """What the tests ask of a page."""

    def __init__(self, path: Path) -> None:
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        self.lang = soup.html["lang"]
        self.ids = {tag["id"] for tag in soup.select("[id]")}
        self.sections = [tag["id"] for tag in soup.select("article section[id]")]
        self.links = [tag["href"] for tag in soup.select("a[href]")]
        loading = soup.select("[src], link[rel=stylesheet], link[rel~=icon], link[rel=preload]")
        self.loads = [tag.get("src") or tag["href"] for tag in loading]
        self.canonical = [tag["href"] for tag in soup.select("link[rel=canonical]")]
        self.last_run = [" ".join(tag.get_text().split()) for tag in soup.select(".last-run")]
        self.alternates = {tag["hreflang"]: tag["href"] for tag in soup.select("link[rel=alternate]")}
        self.formulas = [len(soup.select(f"{tag}.math")) for tag in ("div", "span")]
        for tag in soup.select("article pre, article .math"):
            tag.replace_with("x")
        self.paragraphs = [tag.get_text() for tag in soup.select("article p, article li, article td, article summary")]


@pytest.fixture(scope="session")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_page_is_there_in_both_languages(site, pages):
    for lang in LANGUAGES:
        for name in [*NAMES, "search", "genindex"]:
            assert pages[site / lang / f"{name}.html"].lang == CODES[lang]
    assert site / "index.html" in pages


@pytest.mark.parametrize("name", NAMES)
def test_anchors_are_the_sources_in_both_languages(site, pages, name):
    anchors = list(read_chapter(SOURCES / f"{name}.md").anchors)
    for lang in LANGUAGES:
        assert pages[site / lang / f"{name}.html"].sections == anchors


def test_nothing_is_loaded_from_another_host(site, pages):
    for path, page in pages.items():
        assert [url for url in page.loads if urlsplit(url).netloc] == [], path
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import\s*)[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_internal_link_and_file_is_there(site, pages):
    for path, page in pages.items():
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.relative_to(site)} -> {url}"
            if parts.fragment and target.suffix == ".html" and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{path.relative_to(site)} -> {url}"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_buttons_lead_to_the_source_to_colab_and_to_the_other_language(site, pages, name, lang):
    page = pages[site / lang / f"{name}.html"]
    other = LANGUAGES[1 - LANGUAGES.index(lang)]
    assert f"{ADDRESS.url}/edit/{ADDRESS.branch}/chapters/src/{name}.md" in page.links
    assert f"../{other}/{name}.html" in page.links
    is_notebook = read_chapter(SOURCES / f"{name}.md").has_code
    assert (ADDRESS.colab(f"chapters/{lang}/{name}.ipynb") in page.links) == is_notebook
    assert (f"_sources/{name}.ipynb" in page.links) == is_notebook
    assert page.alternates == {
        "zh-CN": f"{ADDRESS.site}zh/{name}.html",
        "en": f"{ADDRESS.site}en/{name}.html",
        "x-default": ADDRESS.site,
    }


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_where_it_lives_and_a_notebook_what_ran_it(site, pages, name, lang):
    page = pages[site / lang / f"{name}.html"]
    assert page.canonical == [f"{ADDRESS.site}{lang}/{name}.html"]
    notebook = SOURCES.parent / lang / f"{name}.ipynb"
    if notebook.exists():
        run = nbformat.read(notebook, as_version=4).metadata.book.run
        (line,) = page.last_run
        assert all(str(run[key]) in line for key in ("device", "python", "torch", "lab", "date")), line
    else:
        assert page.last_run == []


def test_every_source_is_in_the_table_of_contents():
    assert sorted(NAMES) == sorted(path.stem for path in SOURCES.glob("*.md"))


def test_no_markup_is_left_literal(pages):
    for path, page in pages.items():
        for text in page.paragraphs:
            assert "**" not in text and not re.search(r"\$[^$]+\$", text), f"{path}: {text}"


def test_no_space_between_han_characters(site, pages):
    for path, page in pages.items():
        if path.is_relative_to(site / "zh"):
            for text in page.paragraphs:
                assert not re.search(rf"[{HAN}]\s+[{HAN}]", text), f"{path}: {text}"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_all_formulas_became_formulas(site, pages, name, lang):
    parts = read_chapter(SOURCES / f"{name}.md").parts
    source = "\n".join(part.text(lang) for part in parts if isinstance(part, Prose))
    source = re.sub(r"^```.*?^```|`[^`\n]*`", "", source, flags=re.S | re.M)
    display = re.findall(r"\$\$.+?\$\$", source, re.S)
    inline = re.findall(r"\$[^$\n]+\$", re.sub(r"\$\$.+?\$\$", "", source, flags=re.S))
    assert pages[site / lang / f"{name}.html"].formulas == [len(display), len(inline)]
