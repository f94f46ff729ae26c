"""Ours and theirs in turn, in one process, by the processor time they use."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from bench.models import TINY, llama
from bench.table import Row, Run
from lab.measure.timing import Timing, measure_interleaved
from lab.model.device import DTYPES

Tokens = list[list[int]]  # of each prompt
CPU = torch.device("cpu")
MEASURED = [f"{who}_{what}" for who in ("ours", "peer") for what in ("ms", "min_ms", "max_ms")]
UNITS = dict.fromkeys(MEASURED, "ms") | {"peer": "the faster way", "ratio": "1"}


@dataclass(frozen=True)
class Contest:
    """The same work done by us and, in one or several ways, by transformers: each call returns the tokens chosen."""

    settings: Mapping[str, Any]
    goal: float  # ours / theirs, at most
    ours: Callable[[], Tokens]
    theirs: Mapping[str, Callable[[], Tokens]]


def rows_of(contests: Callable[..., list[Contest]], **quick: Any) -> Callable[[Run], Iterator[Row]]:
    """The rows of a table of contests, for each dtype; `quick` are the arguments of `contests` in a quick run."""

    def rows(asked: Run) -> Iterator[Row]:
        for dtype in asked.dtypes:
            pair = llama(DTYPES[dtype], **(TINY if asked.quick else {}))
            for contest in asked.in_time(contests(pair, **(quick if asked.quick else {}))):
                yield {"dtype": dtype, **run(contest, is_exact=pair.is_exact, repeats=asked.repeats)}

    return rows


class Disagreement(AssertionError):
    """Both did not choose the same tokens, so their times are not of the same work."""


def run(contest: Contest, *, is_exact: bool, repeats: int) -> dict[str, Any]:
    """One row of a table: milliseconds of both, theirs in their fastest way, and the ratio of the medians.

    Raises Disagreement if `is_exact` and any two calls of a round chose different tokens.
    """
    tokens: dict[str, list[Tokens]] = {}

    def keeping(name: str, call: Callable[[], Tokens]) -> Callable[[], None]:
        return lambda: tokens.setdefault(name, []).append(call())

    calls = {"ours": contest.ours, **contest.theirs}
    calls_kept = {name: keeping(name, call) for name, call in calls.items()}
    timings = measure_interleaved(calls_kept, CPU, repeats=repeats, clock="process")
    for name in contest.theirs:
        if is_exact and tokens[name] != tokens["ours"]:
            raise Disagreement(f"{dict(contest.settings)}: ours and transformers' {name} chose different tokens")
    fastest = min(contest.theirs, key=lambda name: timings[name].median)
    return {
        **contest.settings,
        **_columns("ours", timings["ours"]),
        "peer": f"transformers {fastest}",
        **_columns("peer", timings[fastest]),
        "ratio": timings["ours"].median / timings[fastest].median,
        "goal": contest.goal,
    }


def _columns(who: str, timing: Timing) -> dict[str, float]:
    return {f"{who}_ms": timing.median, f"{who}_min_ms": timing.min, f"{who}_max_ms": timing.max}
