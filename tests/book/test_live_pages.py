"""What a page gets for its figures: script and style if it has one, Python if the build could get it."""

from types import SimpleNamespace

import pytest

from tools import build_book
from tools.settings import Address, load_config
from tools.sphinx_book import add_live_figures
from tools.vendor_pyodide import NOTICES, CannotVendor

FIGURE = '<div class="live" data-figure="gantt"></div>'
LICENCE = Address.from_config(load_config()).file("tools/live/LICENSE-python.txt")


def page(body: str, notices: dict[str, str]) -> tuple[list[str], dict]:
    """What the page loads, and its context."""
    loads: list[str] = []
    app = SimpleNamespace(add_css_file=loads.append, add_js_file=lambda name, **how: loads.append(name))
    context = {"body": body, "metatags": "", "live_notices": notices}
    add_live_figures(app, "credits", "page.html", context, None)
    return loads, context


def test_a_page_with_a_figure_is_told_where_python_is():
    loads, context = page(FIGURE, {LICENCE: "LICENSE-python.txt"})
    assert loads == ["live.css", "live.js"] and 'content="../live/"' in context["metatags"]


def test_without_python_there_is_a_script_for_quizzes_and_nothing_to_run():
    loads, context = page(FIGURE, {})
    assert loads == ["live.css", "live.js"] and context["metatags"] == ""


def test_a_page_without_a_figure_loads_nothing_and_its_licences_are_the_sites():
    link = f'<a href="{LICENCE}">PSF</a>'
    loads, context = page(link, {LICENCE: "LICENSE-python.txt"})
    assert loads == [] and context["metatags"] == ""
    assert context["body"] == '<a href="../live/LICENSE-python.txt">PSF</a>'
    assert page(link, {})[1]["body"] == link


@pytest.mark.parametrize("has_python", [True, False])
def test_the_build_asks_for_what_it_has(monkeypatch, tmp_path, has_python):
    monkeypatch.setattr(build_book, "PYTHON", tmp_path if has_python else tmp_path / "none")
    context = build_book.language_config(load_config(), "zh")["sphinx"]["config"]["html_context"]
    assert set(context["live_notices"].values()) == (set(NOTICES) if has_python else set())


def test_a_build_without_npm_goes_on_and_says_so(monkeypatch, capsys):
    def fail():
        raise CannotVendor("npm isn't installed")

    monkeypatch.setattr(build_book, "vendor", fail)
    build_book.vendor_python()
    said = capsys.readouterr().err
    assert "npm isn't installed" in said and said.count("\n") == 1
