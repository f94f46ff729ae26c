"""Runs side by side, as the chapter prints them."""

from lab.streams.report import as_table, run_all, run_variants


def test_a_line_says_what_is_wrong_and_what_it_costs():
    head, broken, mended = as_table(run_variants("copy_no_help")).splitlines()
    assert broken.split() == "clone 1 NO 1 1,048,576 405 0 4 read after write".split()
    assert mended.split()[:5] == ["event", "2", "yes", "0", "0"]
    assert "写后读" in as_table(run_variants("raw", "broken"), "zh")


def test_a_program_of_the_readers_own():
    def program(rt):
        return rt.mean(rt.full(4, 3, "x"))

    (run,) = run_all({"mine": program}, want=3)
    assert (run.name, run.verdict.right, run.verdict.hazards) == ("mine", True, ())
