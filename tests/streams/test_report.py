"""Runs side by side, as the chapter prints them."""

import pytest

from lab.streams.report import COLUMNS, as_table, columns, explained, run_all, run_variants
from lab.streams.words import explain


def test_a_line_says_what_is_wrong_and_what_it_costs():
    head, broken, mended = as_table(run_variants("copy_no_help")).splitlines()
    assert broken.split() == "clone 1 NO 1,048,576 405 0 4 read after write".split()
    assert mended.split()[:5] == ["event", "2", "yes", "0", "417"]
    assert "写后读" in as_table(run_variants("raw", "broken"), "zh")


def test_a_program_of_the_readers_own():
    def program(rt):
        return rt.mean(rt.full(4, 3, "x"))

    (run,) = run_all({"mine": program}, want=3)
    assert (run.name, run.verdict.right, run.verdict.hazards) == ("mine", True, ())


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_explanations_fit_the_page_and_lose_nothing(lang):
    (run,) = run_variants("free_early", "broken")
    text = explained(run.verdict.hazards, lang)
    assert max(map(columns, text.splitlines())) <= COLUMNS
    whole = " ".join(explain(hazard, lang) for hazard in run.verdict.hazards)
    assert "".join(text.split()) == "".join(whole.split())
