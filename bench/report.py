"""A table: printed row by row as it comes, kept as a record."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.neighbours import Neighbours
from bench.table import Row, Run, Table
from lab.measure.environment import environment
from lab.measure.records import Record
from lab.model.device import resolve_device


def show(rows: Iterable[Row]) -> list[Row]:
    """Print each row as soon as it is there; the rows."""
    shown: list[Row] = []
    for row in rows:
        widths = [max(len(name), len(_text(value))) for name, value in row.items()]
        if not shown:
            print("  ".join(name.rjust(width) for name, width in zip(row, widths)))
        print("  ".join(_text(value).rjust(width) for value, width in zip(row.values(), widths)), flush=True)
        shown.append(row)
    return shown


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{0 if abs(value) >= 10 else 2}f}" if isinstance(value, float) else str(value)


def verdict(rows: Sequence[Row], run: Run, neighbours: Neighbours) -> str:
    """How many rows reach their goal, what was left out, and whether the machine was quiet enough to believe them."""
    judged = [row for row in rows if row.get("goal") is not None]
    reached = sum(row["ratio"] <= row["goal"] for row in judged)
    goals = f"{reached} of {len(judged)} rows reach their goal. " if judged else ""
    return "\n".join([*(f"left out: {line}" for line in run.left_out), goals + neighbours.verdict()])


def record(name: str, table: Table, rows: Sequence[Row], run: Run, neighbours: Neighbours) -> Record:
    parameters = {**table.parameters, "warmup": 1, "repeats": run.repeats, "left_out": run.left_out}
    where = environment(resolve_device()) | {"machine": neighbours.verdict()}
    return Record(name, parameters, rows, where, table.units)
