"""A table: printed row by row as it comes, kept as a record."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import transformers

from bench.contest import CPU
from bench.neighbours import Neighbours
from lab.measure.environment import environment
from lab.measure.records import Record

MEASURED = [f"{who}_{what}" for who in ("ours", "peer") for what in ("ms", "min_ms", "max_ms")]
UNITS = dict.fromkeys(MEASURED, "ms") | {"peer": "the faster way", "ratio": "1"}

Row = Mapping[str, Any]


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
    return f"{value:.{0 if value >= 10 else 2}f}" if isinstance(value, float) else str(value)


def verdict(rows: Sequence[Row], neighbours: Neighbours) -> str:
    """How many rows reach their goal, and whether the machine was quiet enough to believe them."""
    reached = sum(row["ratio"] <= row["goal"] for row in rows)
    return f"{reached} of {len(rows)} rows reach their goal. {neighbours.verdict()}"


def record(name: str, rows: Sequence[Row], repeats: int, neighbours: Neighbours) -> Record:
    return Record(
        experiment=name,
        parameters={"model": "llama-124.7m, random weights", "clock": "process", "warmup": 1, "repeats": repeats},
        rows=rows,
        environment=environment(CPU) | {"transformers": transformers.__version__, "machine": neighbours.verdict()},
        units=UNITS,
    )
