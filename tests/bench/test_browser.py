"""The browser's table: what is asked, what is counted, and that it runs."""

import sys
from pathlib import Path

import pytest

from bench.browser import SETTINGS, UNITS, ask_here, bytes_sent, questions_of, row
from bench.table import Run
from bench.turns import measured_in
from lab.live.registry import FIGURES, answer
from tools.browser import BROWSER
from tools.vendor_pyodide import CannotVendor, vendor


def test_text_is_counted_as_it_is_sent(tmp_path: Path) -> None:
    for name, least, most in (("a.mjs", 1, 1000), ("a.json", 1, 1000), ("a.wasm.gzip", 50_000, 50_000)):
        (tmp_path / name).write_bytes(b"a" * 50_000)
        assert least <= bytes_sent(tmp_path / name) <= most


@pytest.mark.parametrize("name", FIGURES)
def test_every_question_is_the_same_each_time_and_has_an_answer(name: str) -> None:
    questions = questions_of(name)
    assert questions == questions_of(name) and len(questions) == SETTINGS
    assert not any('"error"' in answer(*question.values()) for question in questions)
    assert ask_here(questions[:1]) > 0


def test_what_a_row_did_not_measure_is_none() -> None:
    fetched = row("fetched", {"fetched_bytes": 3}, ratio=0.5)
    assert fetched.keys() == {"what", *UNITS, "ratio", "goal"} and fetched["browser_ms"] is None


def test_it_runs(missing) -> None:
    if BROWSER is None:
        missing("no Chromium on this machine (apt-get install chromium)")
    try:
        vendor()
    except CannotVendor as error:
        missing(str(error))
    start, fetched, figure = measured_in(Path(sys.executable), "bench.browser", Run(1, 1, (), True))
    assert start["browser_ms"] > 0 and 10**6 < fetched["fetched_bytes"] < 10**7
    assert figure["what"] in FIGURES and figure["times"] == pytest.approx(figure["browser_ms"] / figure["cpython_ms"])
