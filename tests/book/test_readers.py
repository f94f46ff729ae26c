"""The pages for every reader: in the dark, on a phone, by keyboard, by screen reader, on a slow line."""

import gzip

import pytest

from tests.audit import violations
from tools.settings import LANGUAGES, pages

NAMES = [*pages(), "search"]
CHAPTERS = [name for name in NAMES if name[0].isdigit()]
PHONE = {"width": 390, "height": 800}
DESK = {"width": 1280, "height": 800}
FIRST_VISIT = 1_500_000  # bytes, compressed
TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"


def serious_findings(page, exclude: tuple[str, ...] = ()) -> list[str]:
    found = (rule for rule in violations(page, exclude) if rule["impact"] in ("serious", "critical"))
    return [f"{rule['id']}: {rule['nodes'][0]['html']}" for rule in found]


def press_tab_until(page, selector: str, most: int = 40) -> bool:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return True
    return False


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", PHONE)], ids=["light", "dark"])
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_accessible_and_fits(visit, name, lang, scheme, viewport):
    """The colours of code are audited on one page only: every word of it is an element, which takes long."""
    page = visit(f"{lang}/{name}.html", color_scheme=scheme, viewport=viewport)
    page.wait_for_function("!document.querySelector('article .math:not(:has(mjx-container))')")
    assert page.locator("html").get_attribute("data-theme") == scheme
    assert page.evaluate(TOO_WIDE) <= 0
    assert serious_findings(page, exclude=() if name == "glossary" else ("article pre",)) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("document.querySelector('article h1').style.color = '#ddd'", "color-contrast"),
        ("document.querySelector('article').append(new Image())", "image-alt"),
    ],
)
def test_the_audit_sees_what_is_wrong(visit, change, finding):
    page = visit("en/index.html", viewport=DESK, color_scheme="light")
    page.evaluate(change)
    assert any(finding in line for line in serious_findings(page))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_header_is_one_line_on_a_phone(visit, lang):
    page = visit(f"{lang}/{CHAPTERS[0]}.html", viewport=PHONE)
    boxes = [
        page.locator(f".bd-header-article {icon}").first.bounding_box() for icon in (".language-switch", ".fa-list")
    ]
    text, icon = (box["y"] + box["height"] / 2 for box in boxes)
    assert abs(text - icon) < 8


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_switch_and_the_search_are_reached_by_keyboard(visit, lang):
    page = visit(f"{lang}/{CHAPTERS[0]}.html", viewport=DESK)
    assert press_tab_until(page, ".search-button-field, .search-button__button, .search-button")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] input[type=search]:focus")
    page.keyboard.type("KV")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=KV*")
    page.go_back()
    assert press_tab_until(page, "a.language-switch")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{LANGUAGES[1 - LANGUAGES.index(lang)]}/{CHAPTERS[0]}.html*")


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_visit_is_small(browser, address, name):
    """What a new reader loads, each file compressed as a server sends it."""
    page, answers = browser.new_page(), []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(f"{address}/zh/{name}.html", wait_until="networkidle")
    sizes = {answer.url: len(gzip.compress(answer.body())) for answer in answers}
    page.close()
    assert any("mathjax" in url for url in sizes)
    assert sum(sizes.values()) < FIRST_VISIT, sorted(sizes.items(), key=lambda item: -item[1])[:5]
