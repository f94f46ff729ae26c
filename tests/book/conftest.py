import fcntl
import os
from pathlib import Path

import pytest

from tools import build_book
from tools.settings import load_config


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


@pytest.fixture(scope="session")
def address(serve, site):
    return serve(site)
