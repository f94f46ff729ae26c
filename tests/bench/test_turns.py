"""Turns are taken one by one, and rows come over from another interpreter, or one line that says why not."""

import sys
from pathlib import Path

import pytest

from bench.table import Run, Skipped
from bench.turns import SETTLE_S, in_turn, measured_in, rates

HERE = Path(sys.executable)


def quick() -> Run:
    return Run(1, 1, ("float32",), True)


def test_all_take_turns_and_the_first_round_is_dropped() -> None:
    taken: list[str] = []

    def call(name: str):
        return lambda: taken.append(name) or len(taken)

    assert in_turn({"a": call("a"), "b": call("b")}, repeats=2) == {"a": [3, 5], "b": [4, 6]}
    assert taken == ["a", "b"] * 3


def test_whoever_comes_next_waits_until_the_threads_before_it_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | str] = []
    monkeypatch.setattr("bench.turns.time.sleep", seen.append)
    in_turn({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, repeats=0)
    assert seen == [SETTLE_S, "a", SETTLE_S, "b"]


def test_rates_are_of_the_median_the_slowest_and_the_fastest() -> None:
    assert rates("ours", 12, [3.0, 2.0, 6.0]) == {"ours_per_s": 4.0, "ours_min_per_s": 2.0, "ours_max_per_s": 6.0}


def test_a_peer_that_is_not_there_is_said() -> None:
    with pytest.raises(Skipped, match="bench.nothing: .*No module named bench.nothing"):
        list(measured_in(HERE, "bench.nothing", quick()))


def test_rows_and_what_was_left_out_come_over() -> None:
    run = quick()
    (row,) = measured_in(HERE, "bench.simulators", run, source="azure-conv")
    assert row["requests"] == 20 and row["ours_per_s"] > 0 and row["peer"] is None
    assert [line.partition(":")[0] for line in run.left_out] == ["sched_sim", "vidur"]
