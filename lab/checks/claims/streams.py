"""Claims of the stream experiments: what the catalogue expects of each variant, and figures that follow from others."""

import math

from lab.checks.claims.common import Problems, close
from lab.checks.streams import EXPERIMENTS, SANITIZED
from lab.measure.records import Record, Row
from lab.streams.programs import find

LARGE = 2**24  # bytes from which a copy is more than its launch


def streams(record: Record) -> Problems:
    if record.experiment.removeprefix("streams-") not in EXPERIMENTS:
        yield f"there is no stream experiment {record.experiment!r}"
    for row in record.rows:
        where = ", ".join(str(value) for value in record.settings(row).values() if isinstance(value, str))
        for problem in (*_verdict(row), *_arithmetic(row)):
            yield f"{where or 'row'}: {problem}"
    yield from _coverage(record)
    yield from _copies_cost(record)


def _verdict(row: Row) -> Problems:
    if row.get("match") is False:
        yield "the run itself found that it is not what is expected"
    if "program" not in row:
        return
    if "reported" in row:
        if (row["program"], row["variant"], row["reported"]) not in SANITIZED:
            yield f"the sanitizer reported {row['reported']}"
        return
    variant = find(row["program"]).variant(row["variant"])
    if "runs" in row:
        luck = variant.right is None and 0 <= row["right_runs"] <= row["runs"]
        if not luck and row["right_runs"] != (row["runs"] if variant.right else 0):
            yield f"right in {row['right_runs']} of {row['runs']} runs, expected {'all' if variant.right else 'none'}"
        return
    right = row["value"] is not None and math.isclose(row["value"], variant.want, rel_tol=1e-5)
    if row["right"] != right or row["want"] != variant.want:
        yield f"{row['value']} for {row['want']} is called {row['right']}; {variant.want} is wanted"
    if variant.right is not None and right != variant.right:
        yield f"the value {row['value']} is {'right' if right else 'wrong'}, which it must not be"
    for column in ("device_copies", "device_bytes", "error"):
        if row[column] != getattr(variant, column):
            yield f"{column} is {row[column]}, expected {getattr(variant, column)}"


def _arithmetic(row: Row) -> Problems:
    figures = []
    if row.get("gb_per_s") is not None:
        figures.append(("gb_per_s", 2 * row["bytes"] / row["device_us"] / 1e3))
    if "us_per_edge" in row:
        figures.append(("us_per_edge", (row["two_streams_us"] - row["one_stream_us"]) / row["kernels"]))
    if "gated" in row:
        figures.append(("speed_up", row["one_stream_us"] / row["two_streams_us"]))
    for column, value in figures:
        if not close(row[column], value, 1e-3):
            yield f"{column} is {row[column]}, the others give {value:.6g}"
    if "shares_storage" in row and (row["device_copies"] > 0) != (row["device_bytes"] > 0):
        yield f"{row['device_copies']} copies of {row['device_bytes']} bytes"


def _coverage(record: Record) -> Problems:
    """Every variant of each program that is there."""
    found = [(row["program"], row["variant"]) for row in record.rows if "program" in row and "reported" not in row]
    wanted = [(name, v.name) for name in dict.fromkeys(name for name, _ in found) for v in find(name).variants]
    if found != wanted:
        yield f"the variants are {found}, the catalogue has {wanted}"


def _copies_cost(record: Record) -> Problems:
    """To copy what was handed over costs more than to wait for it."""
    us = {(row["how"], row["bytes"]): row["us"] for row in record.rows if "us" in row}
    for (how, nbytes), event in us.items():
        if how == "event" and nbytes >= LARGE and not event < us["event and clone", nbytes]:
            yield f"{nbytes} bytes: the event takes {event} us, with a copy {us['event and clone', nbytes]} us"
