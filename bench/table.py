"""What a table of the benchmark is: a name, a function that yields its rows, and what its columns mean."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Row = Mapping[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).parents[1]


class Skipped(Exception):
    """A table, or a peer in it, that can't be measured here: one line that says what is missing."""


@dataclass
class Run:
    """What is asked of a table, and what it had to leave out."""

    repeats: int  # rounds that count, warm-up apart
    threads: int
    dtypes: tuple[str, ...]
    quick: bool  # tiny sizes: does it run at all?
    seconds: float = float("inf")  # for the whole table
    trace: Path | None = None  # what the simulators are given
    left_out: list[str] = field(default_factory=list)  # one line each: which peer or rows, and why
    _began: float = field(default_factory=time.monotonic)

    @property
    def clock(self) -> str:
        """Processor time says nothing of threads that wait for each other, wall time nothing of a busy machine."""
        return "process" if self.threads == 1 else "wall"

    def in_time(self, cases: Iterable[T], dtype: str | None = None) -> Iterator[T]:
        """The cases one by one, while one as long as the last still fits into the table's time; the others are noted
        as left out. Of a `dtype`: into its share and what those before it left."""
        shares = 1 if dtype is None else len(self.dtypes) / (1 + self.dtypes.index(dtype))
        late, took = list[T](), 0.0
        for case in cases:
            began = time.monotonic()
            if began - self._began + took < self.seconds / shares:
                yield case
                took = time.monotonic() - began
            else:
                late.append(case)
        if late:
            over = f"too little was left of its share of the {self.seconds:.0f} s for this table"
            self.left_out.append(f"{late[0]}{f', and {len(late) - 1} more' if late[1:] else ''}: {over}")


@dataclass(frozen=True)
class Table:
    """`rows` yields the rows, all with the same columns, or raises Skipped. A row with `ratio` and `goal` reaches its
    goal if the ratio is at most that."""

    title: str  # what was timed, by which clock
    rows: Callable[[Run], Iterator[Row]]
    units: Mapping[str, str]  # of the columns that were measured; the others are settings
    parameters: Mapping[str, Any] = field(default_factory=dict)  # what all rows share; may override the run's
    seconds: float = float("inf")  # that its cases may take, where `Run.in_time` yields them
    by_name: bool = False  # measured only if it is asked for


def goals(row: Row) -> dict[str, bool]:
    """Which fields of a row have a goal, and whether they reach it."""
    judged = {}
    for ratio, goal in (("ratio", "goal"), ("ttft_ratio", "ttft_goal")):
        if row.get(goal) is not None:
            judged[ratio] = row[ratio] <= row[goal]
    if row.get("at_least_per_s") is not None:
        judged["at_least_per_s"] = row["ours_per_s"] >= row["at_least_per_s"]
    return judged


def python_of(environment: str) -> Path:
    """The interpreter of a peer's own environment, `.venv-NAME`. Raises Skipped if it isn't installed."""
    python = ROOT / f".venv-{environment}" / "bin" / "python"
    if not python.exists():
        raise Skipped(f"{environment} is not installed in .venv-{environment}; `make bench` does that")
    return python
