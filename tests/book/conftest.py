import fcntl
import functools
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tools import build_book
from tools.settings import load_config

THEME_NOISE = "Got invalid theme mode"  # the theme's own remark on a first visit


@pytest.fixture(scope="session")
def site() -> Path:
    """The built book; with several pytest workers, the first one that asks builds it for all."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    build_book.BUILD.mkdir(exist_ok=True)
    built_for = build_book.BUILD / "built-for-test-run"
    with (build_book.BUILD / "test-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built_for.exists() or built_for.read_text() != run:
            config = load_config()
            build_book.assemble(config, build_book.build(config, "html"))
            built_for.write_text(run)
    return build_book.BUILD / "html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def address(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def visit(browser, address):
    """Open pages as a new reader; at the end, nothing may have gone wrong and nothing asked of another host."""
    contexts, trouble = [], []

    def visit(url: str, **options):
        context = browser.new_context(**options)
        contexts.append(context)

        def guard(route):
            local = urlsplit(route.request.url).hostname in (None, "127.0.0.1")
            if not local:
                trouble.append(f"asked {route.request.url}")
            route.continue_() if local else route.abort()

        context.route("**/*", guard)
        page = context.new_page()
        page.on("response", lambda answer: None if answer.ok else trouble.append(f"{answer.status} {answer.url}"))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda line: trouble.append(line.text) if line.type in ("error", "warning") else None)
        page.goto(url if "://" in url else f"{address}/{url}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert [line for line in trouble if THEME_NOISE not in line] == []
