"""A page with every figure, as the book has them, on a server that allows no more than it must."""

import fcntl
import functools
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

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
<link rel="stylesheet" href="_static/live.css"><script defer src="_static/live.js"></script>
<main><h1>Figures</h1>{figures}</main></html>"""


@pytest.fixture(scope="session")
def live_site(tmp_path_factory) -> Path:
    BUILD.mkdir(exist_ok=True)
    try:
        with (BUILD / "live-lock").open("w") as lock:  # of several pytest workers the first one makes it for all
            fcntl.flock(lock, fcntl.LOCK_EX)
            python = vendor()
    except CannotVendor as error:
        pytest.skip(str(error))  # no page of the book needs them yet
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(python, site / "live")
    for lang in ("zh", "en"):
        shutil.copytree(ROOT / "_assets/static", site / lang / "_static")
        figures = "".join(figure_html(figure, lang) for figure in FIGURES.values())
        (site / lang / "page.html").write_text(PAGE.format(lang=lang, figures=figures), encoding="utf-8")
    return site


class Strict(SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def live_address(live_site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Strict, directory=str(live_site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def visit(browser, live_address):
    """Open pages as a new reader. `visit.asked` is what they asked for, `visit.trouble` what went wrong: at the end it
    must be empty.
    """
    contexts = []

    def visit(path: str, lose: str = "", **options):
        context = browser.new_context(**options)
        contexts.append(context)

        def guard(route):
            url = urlsplit(route.request.url)
            visit.asked.append(url.path)
            if url.hostname != "127.0.0.1":
                visit.trouble.append(f"asked {route.request.url}")
                route.abort()
            elif lose and lose in url.path:
                route.fulfill(status=404, body="not here")
            else:
                route.continue_()

        context.route("**/*", guard)
        page = context.new_page()
        page.on("pageerror", lambda error: visit.trouble.append(str(error)))
        page.on("console", lambda line: visit.trouble.append(line.text) if line.type in ("error", "warning") else None)
        page.goto(f"{live_address}/{path}")
        return page

    visit.asked, visit.trouble = [], []
    yield visit
    for context in contexts:
        context.close()
    assert visit.trouble == []
