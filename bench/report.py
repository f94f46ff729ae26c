"""A table: printed row by row as it comes, kept as a record."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from bench.neighbours import Neighbours
from bench.table import Row, Run, Skipped, Table, goals
from lab.measure.environment import environment
from lab.measure.records import Record
from lab.model.device import resolve_device


def show(table: Table, run: Run) -> list[Row]:
    """Print each row as soon as it is there; the rows, up to where the table had to be given up."""
    shown: list[Row] = []
    for row in _until_skipped(table, run):
        widths = [max(len(name), len(_text(value))) for name, value in row.items()]
        if not shown:
            print("  ".join(name.rjust(width) for name, width in zip(row, widths)))
        print("  ".join(_text(value).rjust(width) for value, width in zip(row.values(), widths)), flush=True)
        shown.append(row)
    return shown


def _until_skipped(table: Table, run: Run) -> Iterator[Row]:
    try:
        yield from table.rows(run)
    except Skipped as why:
        run.left_out.append(f"from here on: {why}")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{0 if abs(value) >= 10 else 2}f}" if isinstance(value, float) else str(value)


def verdict(rows: Sequence[Row], run: Run, neighbours: Neighbours) -> str:
    """How many goals are reached, what was left out, and whether the machine was quiet enough to believe them."""
    judged = [reached for row in rows for reached in goals(row).values()]
    reached = f"{sum(judged)} of {len(judged)} goals are reached. " if judged else ""
    return "\n".join([*(f"left out, {line}" for line in run.left_out), reached + neighbours.verdict()])


def method(table: Table, run: Run) -> dict[str, Any]:
    """How the table is measured, beside what its rows share."""
    return {"clock": run.clock, "warmup": 1, "repeats": run.repeats, **table.parameters}


def record(name: str, table: Table, rows: Sequence[Row], run: Run, neighbours: Neighbours) -> Record:
    where = environment(resolve_device()) | {
        "busy_elsewhere": neighbours.processors,
        "load_average": neighbours.load_average,
        **{name: os.environ.get(name) for name in ("GLIBC_TUNABLES", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY")},
    }
    return Record(name, {**method(table, run), "left_out": run.left_out}, rows, where, table.units)
