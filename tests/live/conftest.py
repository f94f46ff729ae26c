"""A page with every figure, as the book has them, on a server that allows no more than it must."""

import shutil
from pathlib import Path

import pytest

from lab.live.page import figure_html
from lab.live.quiz_page import quiz_html
from lab.live.registry import FIGURES, QUIZZES
from tests.live.kernel import Kernel
from tools.settings import ROOT
from tools.vendor_pyodide import CannotVendor, vendor

POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
POLICY += "style-src 'self'; img-src 'self'"
PAGE = """<!doctype html><html lang="{lang}" data-theme="light"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Figures</title><link rel="icon" href="_static/favicon.svg">
<link rel="stylesheet" href="_static/live.css"><script defer src="_static/live.js"></script>
<meta name="live-python" content="../live/">
<main><h1>Figures</h1>{figures}</main></html>"""


@pytest.fixture(scope="session")
def live_site(tmp_path_factory, missing) -> Path:
    try:
        python = vendor()
    except CannotVendor as error:
        missing(str(error))
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(python, site / "live")
    for lang in ("zh", "en"):
        for folder in ("_assets/static", "lab/live/front"):
            shutil.copytree(ROOT / folder, site / lang / "_static", dirs_exist_ok=True)
        figures = "".join(figure_html(figure, lang) for figure in FIGURES.values())
        quizzes = "".join(quiz_html(quiz, lang) for quiz in QUIZZES.values())
        for name, content in (("page", figures), ("quiz", quizzes)):
            (site / lang / f"{name}.html").write_text(PAGE.format(lang=lang, figures=content), encoding="utf-8")
    return site


@pytest.fixture(scope="session")
def address(serve, live_site):
    return serve(live_site, [("Content-Security-Policy", POLICY)])


@pytest.fixture(scope="session")
def kernel():
    kernel = Kernel.start()
    yield kernel
    kernel.stop()
