"""What the claims of several suites share. A record rounds to 6 digits: numbers are compared to 1 in 10,000."""

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import Any

from lab.measure.records import Record, Row

PROVENANCE = ("device", "torch", "python", "lab", "date")
CONDITIONS = ("model", "source", "dtype", "attention", "block_size", "seed")

Problems = Iterator[str]


def close(a: float, b: float, tolerance: float = 1e-4) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)


def on_gpu(record: Record) -> bool:
    return bool(record.environment.get("cuda"))


def provenance(record: Record) -> Problems:
    for name in PROVENANCE:
        if not record.environment.get(name):
            yield f"environment lacks {name!r}: it is not known where this was measured"
    if "cuda" not in record.environment:
        yield "environment lacks 'cuda', which is null on a CPU: it is not known what should be there of a GPU"


def conditions(record: Record, dtype: str) -> Problems:
    for name in CONDITIONS:
        if record.parameters.get(name) is None:
            yield f"parameters lack {name!r}: it is not known what was run"
    if record.parameters.get("dtype") != dtype:
        yield f"the dtype is {record.parameters.get('dtype')}, and the record is named after {dtype}"


def units(record: Record, known: Mapping[str, str]) -> Problems:
    wanted = {column: unit for column, unit in known.items() if record.rows and column in record.rows[0]}
    for column in sorted(wanted.keys() | record.units.keys()):
        if wanted.get(column) != record.units.get(column):
            yield f"the unit of {column!r} is {record.units.get(column)!r}, not {wanted.get(column)!r}"


def timings(record: Record) -> Problems:
    for number, row in enumerate(record.rows):
        if "median_ms" in row and not 0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"]:
            yield f"row {number}: not 0 < min {row['min_ms']} <= median {row['median_ms']} <= max {row['max_ms']} ms"


def amounts(record: Record, signed: Collection[str]) -> Problems:
    """No bytes, no time, no distance is below 0."""
    for number, row in enumerate(record.rows):
        for column in sorted(record.units.keys() - signed):
            values = row[column] if isinstance(row[column], list) else [row[column]]
            if any(isinstance(value, (int, float)) and value < 0 for value in values):
                yield f"row {number}: {column} is {row[column]}, below 0"


def settings(record: Record, wanted: list[tuple[Any, ...]], *columns: str) -> Problems:
    """The rows are those that the parameters ask for: none left out, none twice. The first that is not is named."""
    found = [tuple(row[column] for column in columns) for row in record.rows]
    for number, (left, right) in enumerate(zip_longest(found, wanted)):
        if left != right:
            there, asked = ("none" if row is None else ", ".join(map(str, row)) for row in (left, right))
            what = f"{len(found)} rows of {' and '.join(columns)}, {len(wanted)} by the parameters"
            yield f"{what}; the first to differ is row {number}: {there} in place of {asked}"
            return


def rises(rows: list[Row], column: str, where: str) -> Problems:
    for left, right in pairwise(rows):
        if not left[column] <= right[column]:
            yield f"{where}: {column} falls from {left[column]} to {right[column]}"
