"""The same work by every engine in turn: one row of a table for each."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.field import Field
from bench.player import Refused, Sample, Tokens
from bench.table import Row, Run
from bench.turns import settled
from lab.measure.roofline import Ceilings
from lab.measure.work import Work

UNITS = {
    "ms": "ms",
    "min_ms": "ms",
    "max_ms": "ms",
    "tokens_per_s": "1/s",
    "of_matmul": "of the measured matmul rate",
    "of_bandwidth": "of the measured memory rate",
    "agrees": "of the tokens are ours",
    "ratio": "ours / this one",
}


@dataclass(frozen=True)
class Entry:
    """How one engine does the work."""

    engine: str
    call: Callable[[], Sample]
    goal: float | None = None  # ours / this one, at most


@dataclass(frozen=True)
class Case:
    """Some work, and all who do it, ours first."""

    settings: Mapping[str, Any]
    work: Sequence[Work]  # of its steps
    tokens: int  # in terms of which its rate is given
    entries: Sequence[Entry]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())


def contest(case: Case, field: Field, run: Run) -> list[Row]:
    """A row an engine, of those that can. Who refuses, be it after some rounds, is noted as left out."""
    entries, samples = list(case.entries), {entry.engine: list[Sample]() for entry in case.entries}
    for _ in range(1 + run.repeats):
        entries = [entry for entry in entries if _has_played(entry, samples[entry.engine], case, run)]
    counted = {entry.engine: samples[entry.engine][1:] for entry in entries}  # the first round is warm-up
    ours = counted[entries[0].engine]
    return [_row(case, entry, counted[entry.engine], ours, field.limits) for entry in entries]


def _row(case: Case, entry: Entry, samples: Sequence[Sample], ours: Sequence[Sample], limits: Ceilings) -> Row:
    times = [sample.ms for sample in samples]
    ms = statistics.median(times)
    return {
        **case.settings,
        "engine": entry.engine,
        "ms": ms,
        "min_ms": min(times),
        "max_ms": max(times),
        "tokens_per_s": case.tokens / ms * 1e3,
        "of_matmul": sum(work.flops for work in case.work) / ms * 1e3 / limits.flops_per_s,
        "of_bandwidth": sum(work.nbytes for work in case.work) / ms * 1e3 / limits.bytes_per_s,
        "agrees": _agreement([sample.tokens for sample in samples], [sample.tokens for sample in ours]),
        "ratio": statistics.median(sample.ms for sample in ours) / ms,
        "goal": entry.goal,
    }


def _has_played(entry: Entry, samples: list[Sample], case: Case, run: Run) -> bool:
    """One more call, kept in `samples`. False if the engine can't do such work, or can't any more."""
    try:
        samples.append(settled(entry.call))
    except Refused as why:
        run.left_out.append(f"{entry.engine}, {case}: {why}")
        return False
    return True


def _agreement(theirs: Sequence[Tokens], ours: Sequence[Tokens]) -> float:
    """The share of tokens that are the same."""
    pairs = [(a, b) for x, y in zip(theirs, ours) for row, mine in zip(x, y) for a, b in zip(row, mine)]
    return sum(a == b for a, b in pairs) / len(pairs)
