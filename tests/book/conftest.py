import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tools import build_book

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def site() -> Path:
    """The built book; with several pytest workers, the first one that asks builds it for all."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    build_book.BUILD.mkdir(exist_ok=True)
    built_for = build_book.BUILD / "built-for-test-run"
    with (build_book.BUILD / "test-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built_for.exists() or built_for.read_text() != run:
            assert build_book.main() == 0
            built_for.write_text(run)
    return build_book.BUILD / "html"


@pytest.fixture(scope="session")
def browser():
    if BROWSER is None:
        reason = "no Chromium on this machine (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("REQUIRE_BROWSER") else pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()
