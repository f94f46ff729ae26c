"""The live figures in a browser beside the same Python here: how long an answer takes, and what it takes to start.

Chromium runs lab.live in Pyodide, in the pages' own worker; CPython calls the same function. Wall time, as a reader
waits it, so only a quiet machine will do. It needs what the book's tests need, `.venv`, Chromium and npm: `python -m
bench.browser` there prints the rows.
"""

import gzip
import json
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from bench.table import ROOT, Row, Run, Skipped, Table
from bench.turns import answer, in_turn, measured_in

SETTINGS, SLOWER_AT_MOST_MS = 6, 100.0  # settings asked of each figure, and how much longer an answer may take
FETCHED_AT_MOST, STARTED_WITHIN_MS = 5_000_000, 3000.0
LANG: Literal["en"] = "en"
WIDTH = 680
PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Live</title><link rel="icon" href="data:,">'
START = """async () => {
  const begun = performance.now();
  window.worker = new Worker("front/live-worker.mjs", {type: "module"});
  window.say = (message) => new Promise((done) => {
    worker.onmessage = ({data}) => done(data);
    worker.postMessage(message);
  });
  const {ready, failed} = await say({base: new URL("live/", location).href});
  if (!ready) throw new Error(failed);
  return (performance.now() - begun) / 1e3;
}"""
ASK = """async (questions) => {
  const begun = performance.now();
  for (const question of questions) {
    const {failed} = await say(question);
    if (failed) throw new Error(failed);
  }
  return (performance.now() - begun) / questions.length;
}"""


class Files(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def site() -> Iterator[tuple[Path, str]]:
    """The folder and address of a page, the worker and the Python for it, as the book has them."""
    from tools.vendor_pyodide import vendor

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(vendor(), f"{folder}/live")
        shutil.copytree(ROOT / "lab/live/front", f"{folder}/front")
        (Path(folder) / "page.html").write_text(PAGE)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Path(folder), f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Reader:
    """Somebody who comes for the first time and starts the figures."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = browser.new_context()
        self.asked_for: list[str] = []
        self.page = self.context.new_page()
        self.page.goto(address + "page.html")
        self.context.on("request", lambda request: self.asked_for.append(request.url.removeprefix(address)))
        self.seconds: float = self.page.evaluate(START)

    def ask(self, questions: list[Mapping[str, Any]]) -> float:
        """Milliseconds for an answer, on average."""
        return self.page.evaluate(ASK, questions)


def bytes_sent(path: Path) -> int:
    """By a host that compresses text, as all do that serve pages; what is packed already it sends as it is."""
    content = path.read_bytes()
    return len(gzip.compress(content, 6)) if path.suffix in (".mjs", ".json") else len(content)


def questions_of(name: str) -> list[Mapping[str, Any]]:
    """Settings of a figure, any value of each knob, always the same; without those that the lab refuses."""
    from lab.live.knobs import Slider
    from lab.live.registry import FIGURES, answer

    rng = random.Random(0)
    questions: list[Mapping[str, Any]] = []
    while len(questions) < SETTINGS:
        values = [
            (knob, knob.marks if isinstance(knob, Slider) else list(knob.options)) for knob in FIGURES[name].knobs
        ]
        settings = json.dumps({knob.name: rng.choice(options) for knob, options in values})
        if "error" not in json.loads(answer(name, settings, LANG, WIDTH)):
            questions.append({"figure": name, "settings": settings, "lang": LANG, "width": WIDTH})
    return questions


def ask_here(questions: list[Mapping[str, Any]]) -> float:
    from lab.live import registry

    start = time.perf_counter()
    for question in questions:
        registry.answer(*question.values())
    return (time.perf_counter() - start) / len(questions) * 1e3


def columns(who: str, unit: str, samples: list[float]) -> dict[str, float]:
    middle, least, most = statistics.median(samples), min(samples), max(samples)
    return {f"{who}_{unit}": middle, f"{who}_min_{unit}": least, f"{who}_max_{unit}": most}


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """A row for each figure, and two for the start; `ratio` is the part of what is allowed."""
    from lab.live.registry import FIGURES
    from tools.browser import chromium

    with site() as (folder, address), chromium() as browser:

        def come_and_go() -> Reader:
            reader = Reader(browser, address)
            reader.context.close()
            return reader

        gone = in_turn({"start": come_and_go}, repeats)["start"]
        fetched = sum(bytes_sent(folder / path) for path in gone[0].asked_for)
        start = columns("browser", "ms", [1e3 * reader.seconds for reader in gone])
        yield row("start", start, ratio=start["browser_ms"] / STARTED_WITHIN_MS)
        yield row("fetched for it", {"fetched_bytes": fetched}, ratio=fetched / FETCHED_AT_MOST)
        reader = Reader(browser, address)
        for name in list(FIGURES)[: 1 if quick else None]:
            questions = questions_of(name)
            calls = {"browser": partial(reader.ask, questions), "here": partial(ask_here, questions)}
            found = in_turn(calls, repeats)
            there, here = columns("browser", "ms", found["browser"]), columns("cpython", "ms", found["here"])
            slower = there["browser_ms"] - here["cpython_ms"]
            times = there["browser_ms"] / here["cpython_ms"]
            yield row(name, {**there, **here, "times": times, "slower_ms": slower}, ratio=slower / SLOWER_AT_MOST_MS)


def row(what: str, measured: Mapping[str, float], ratio: float) -> Row:
    return {"what": what, **dict.fromkeys(UNITS), **measured, "ratio": ratio, "goal": 1.0}


def asked(run: Run) -> Iterator[Row]:
    python = ROOT / ".venv/bin/python"
    if not python.exists():
        raise Skipped("the figures are made by the book's environment, .venv; `make book` sets it up")
    return measured_in(python, "bench.browser", run)


UNITS = {f"{who}_{what}": "ms" for who in ("browser", "cpython") for what in ("ms", "min_ms", "max_ms")}
UNITS |= {"times": "browser / CPython", "slower_ms": "ms", "fetched_bytes": "bytes"}
TABLE = Table(
    "milliseconds for an answer of the live figures",
    asked,
    UNITS | {"ratio": "1"},
    {
        "clock": "wall",
        "settings": SETTINGS,
        "slower_at_most_ms": SLOWER_AT_MOST_MS,
        "started_within_ms": STARTED_WITHIN_MS,
        "fetched_at_most_bytes": FETCHED_AT_MOST,
    },
)

if __name__ == "__main__":
    sys.exit(answer(rows))
