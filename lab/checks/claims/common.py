"""What the claims of several suites share. A record rounds to 6 digits: numbers are compared to 1 in 10,000."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from lab.measure.records import Record, Row

PROVENANCE = ("device", "torch", "python", "lab", "date")

Problems = Iterator[str]


def close(a: float, b: float, tolerance: float = 1e-4) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)


def on_gpu(record: Record) -> bool:
    return bool(record.environment.get("cuda"))


def provenance(record: Record) -> Problems:
    for name in PROVENANCE:
        if not record.environment.get(name):
            yield f"environment lacks {name!r}: it is not known where this was measured"


def units(record: Record, known: Mapping[str, str]) -> Problems:
    wanted = {column: unit for column, unit in known.items() if record.rows and column in record.rows[0]}
    for column in sorted(wanted.keys() | record.units.keys()):
        if wanted.get(column) != record.units.get(column):
            yield f"the unit of {column!r} is {record.units.get(column)!r}, not {wanted.get(column)!r}"


def timings(record: Record) -> Problems:
    for number, row in enumerate(record.rows):
        if "median_ms" in row and not 0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"]:
            yield f"row {number}: not 0 < min {row['min_ms']} <= median {row['median_ms']} <= max {row['max_ms']} ms"


def settings(record: Record, wanted: list[tuple[Any, ...]], *columns: str) -> Problems:
    """The rows are those that the parameters ask for: none left out, none twice."""
    found = [tuple(row[column] for column in columns) for row in record.rows]
    if found != wanted:
        yield f"the rows are of {columns} {found}, and the parameters make them {wanted}"


def rises(rows: list[Row], column: str, where: str) -> Problems:
    for left, right in pairwise(rows):
        if not left[column] <= right[column]:
            yield f"{where}: {column} falls from {left[column]} to {right[column]}"
