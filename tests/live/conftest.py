"""A page with every figure, as the book has them, on a server that allows no more than it must."""

import fcntl
import shutil
from pathlib import Path

import pytest

from lab.live.page import figure_html
from lab.live.registry import FIGURES
from tools.settings import ROOT
from tools.vendor_pyodide import CannotVendor, vendor

BUILD = ROOT / "_build"
POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
POLICY += "style-src 'self'; img-src 'self'"
PAGE = """<!doctype html><html lang="{lang}" data-theme="light"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Figures</title><link rel="icon" href="_static/favicon.svg">
<link rel="stylesheet" href="_static/live.css"><script defer src="_static/book.js"></script>
<main><h1>Figures</h1>{figures}</main></html>"""


@pytest.fixture(scope="session")
def live_site(tmp_path_factory, missing) -> Path:
    BUILD.mkdir(exist_ok=True)
    try:
        with (BUILD / "live-lock").open("w") as lock:  # of several pytest workers the first one makes it for all
            fcntl.flock(lock, fcntl.LOCK_EX)
            python = vendor()
    except CannotVendor as error:
        missing(str(error))
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(python, site / "live")
    for lang in ("zh", "en"):
        for folder in ("_assets/static", "lab/live/front"):
            shutil.copytree(ROOT / folder, site / lang / "_static", dirs_exist_ok=True)
        figures = "".join(figure_html(figure, lang) for figure in FIGURES.values())
        (site / lang / "page.html").write_text(PAGE.format(lang=lang, figures=figures), encoding="utf-8")
    return site


@pytest.fixture(scope="session")
def address(serve, live_site):
    return serve(live_site, [("Content-Security-Policy", POLICY)])
