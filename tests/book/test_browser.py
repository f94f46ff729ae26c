"""The built book in a real Chromium that can reach nothing but this machine."""

import re
from urllib.parse import quote, urlsplit

import pytest

from tools.settings import LANGUAGES, SOURCES, pages
from tools.source import Prose, read_chapter
from tools.sphinx_book import HAN

CHAPTER = read_chapter(SOURCES / "01-chunked-prefill.md")


def found(page) -> list[str]:
    """The files that the search page lists."""
    page.wait_for_selector(".search-summary:not(:empty)")
    return [urlsplit(link.get_attribute("href")).path for link in page.locator("ul.search li > a").all()]


def sentences(lang: str) -> str:
    text = "\n".join(part.text(lang) for part in CHAPTER.parts if isinstance(part, Prose))
    return re.sub(r"^#[^\n]*$|^```.*?^```|\$[^$]*\$|`[^`]*`|[*_]", "", text, flags=re.M | re.S)


@pytest.mark.parametrize(("locale", "lang"), [("zh-CN", "zh"), ("zh-TW", "zh"), ("en-GB", "en"), ("de-DE", "en")])
def test_the_first_page_is_in_the_browsers_language(visit, locale, lang):
    page = visit("index.html", locale=locale)
    page.wait_for_url(f"**/{lang}/index.html")
    assert page.locator("html").get_attribute("lang").startswith(lang)


def test_the_first_page_remembers_the_choice(visit, address):
    page = visit("zh/index.html", locale="zh-CN")
    page.click("a.language-switch")
    page.wait_for_url("**/en/index.html")
    page.goto(f"{address}/index.html")
    page.wait_for_url("**/en/index.html")


def test_the_first_page_has_plain_links_without_javascript(visit):
    page = visit("index.html", java_script_enabled=False)
    assert [link.get_attribute("href") for link in page.locator("a").all()] == ["zh/index.html", "en/index.html"]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", pages())
def test_every_page_opens_and_shows_its_formulas(visit, name, lang):
    page = visit(f"{lang}/{name}.html")
    formulas = page.locator("article .math").count()
    page.wait_for_function(f"document.querySelectorAll('article mjx-container').length === {formulas}")
    assert page.locator("mjx-merror, article [data-mjx-error]").count() == 0
    for image in page.locator("article img").all():
        assert image.evaluate("image => image.complete && image.naturalWidth > 0") and image.get_attribute("alt")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_pages_work_as_files_without_a_network(visit, site, lang):
    page = visit((site / lang / "01-chunked-prefill.html").as_uri(), offline=True)
    page.wait_for_selector("article mjx-container")
    page.click("a.language-switch")
    page.wait_for_url("file://**/01-chunked-prefill.html*")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_switch_lands_on_the_heading_that_is_on_screen(visit, lang):
    page = visit(f"{lang}/01-chunked-prefill.html", viewport={"width": 1200, "height": 500})
    anchor = CHAPTER.anchors[2]
    other = LANGUAGES[1 - LANGUAGES.index(lang)]
    page.wait_for_load_state("networkidle")
    page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", anchor)
    box = page.locator("a.language-switch").bounding_box()  # a plain mouse click: page.click() would scroll first
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/{other}/01-chunked-prefill.html#{anchor}")
    page.wait_for_function(f"Math.abs(document.getElementById('{anchor}').getBoundingClientRect().top) < 200")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_switch_takes_the_settings_of_the_figures_along(visit, lang):
    other = LANGUAGES[1 - LANGUAGES.index(lang)]
    page = visit(f"{lang}/01-chunked-prefill.html?gantt.budget=128&gantt.policy=alternate")
    page.wait_for_load_state("networkidle")
    page.click("a.language-switch")
    page.wait_for_url(f"**/{other}/01-chunked-prefill.html?gantt.budget=128&gantt.policy=alternate*")


def chinese_words() -> dict[str, str]:
    """Words as a reader would type them, out of the middle of the chapter's sentences."""
    runs = [run for run in re.findall(rf"[{HAN}]+", sentences("zh")) if len(run) >= 8]
    mixed = re.search(rf"[A-Za-z]{{2,}} ?[{HAN}]{{2}}|[{HAN}]{{2}} ?[A-Za-z]{{2,}}", sentences("zh"))
    words = {"two": runs[0][3:5], "four": runs[0][2:6], "whole": runs[-1]}
    return words | ({"mixed": mixed[0]} if mixed else {})


@pytest.mark.parametrize("word", chinese_words().values(), ids=chinese_words().keys())
def test_chinese_search_finds_a_word_inside_a_sentence(visit, word):
    assert "01-chunked-prefill.html" in found(visit(f"zh/search.html?q={quote(word)}"))


def test_english_search_finds_a_word_inside_a_sentence(visit):
    word = max(re.findall(r"(?<= )[a-z]{6,}(?= )", sentences("en")), key=len)
    assert "01-chunked-prefill.html" in found(visit(f"en/search.html?q={word}"))


@pytest.mark.parametrize(("lang", "word"), [("zh", "龘靐齉爩"), ("en", "xylophonist")])
def test_search_for_what_is_not_there_ends_and_finds_nothing(visit, lang, word):
    assert found(visit(f"{lang}/search.html?q={quote(word)}")) == []
