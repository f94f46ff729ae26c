"""What all tests share."""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
import torch

from lab.cli import main
from lab.model.weights import LoadedModel, load_model
from tools.browser import BROWSER, chromium

THEME_NOISE = "Got invalid theme mode"  # the book theme's own remark on a first visit

torch.set_num_threads(1)  # several threads round otherwise in some products, and wait for one another on a busy machine


@pytest.fixture(scope="session")
def smollm2() -> LoadedModel:
    """The real model, SmolLM2-135M-Instruct, float32 on the CPU; loading it takes seconds."""
    return load_model("smollm2", dtype="float32", device="cpu")


@pytest.fixture
def lab(capsys):
    """`python -m lab` in this process: its arguments in; status, standard output and standard error out."""

    def lab(*argv: str) -> tuple[int, str, str]:
        try:
            status = main(argv)
        except SystemExit as exit:  # argparse
            status = exit.code
        return status, *capsys.readouterr()

    return lab


@pytest.fixture(scope="session")
def missing():
    """What to call with what a page test lacks: without it the test is skipped, or fails where none may be."""
    return pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip


@pytest.fixture(scope="session")
def browser(missing):
    """Chromium, one for all tests of a worker: Playwright's synchronous API can't be started twice in a process."""
    if BROWSER is None:
        missing("no Chromium on this machine (apt-get install chromium)")
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def serve():
    """Serve a folder to this machine, each answer with these headers; returns the address."""
    servers = []

    def serve(folder, headers=()):
        class Handler(SimpleHTTPRequestHandler):
            def end_headers(self):
                for header in headers:
                    self.send_header(*header)
                super().end_headers()

            def log_message(self, *args):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()


@pytest.fixture
def visit(browser, address):
    """Open pages below `address` as a new reader; the files whose path holds `lose` are not there.

    `visit.asked` is what the pages asked for, `visit.trouble` what went wrong and what another host was asked for: at
    the end it must be empty.
    """
    contexts = []

    def visit(url, lose="", **options):
        context = browser.new_context(**options)
        contexts.append(context)

        def guard(route):
            asked = urlsplit(route.request.url)
            visit.asked.append(asked.path)
            if asked.hostname not in (None, "127.0.0.1"):
                visit.trouble.append(f"asked {route.request.url}")
                route.abort()
            elif lose and lose in asked.path:
                route.fulfill(status=404, body="not here")
            else:
                route.continue_()

        def note(line):
            visit.trouble.append(line)

        context.route("**/*", guard)
        page = context.new_page()
        page.on("response", lambda answer: None if answer.ok else note(f"{answer.status} {answer.url}"))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("console", lambda line: note(line.text) if line.type in ("error", "warning") else None)
        page.goto(url if "://" in url else f"{address}/{url}")
        return page

    visit.asked, visit.trouble = [], []
    yield visit
    for context in contexts:
        context.close()
    assert [line for line in visit.trouble if THEME_NOISE not in line] == []
