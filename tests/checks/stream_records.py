"""Records of the stream experiments as a GPU that does what the model does would make them."""

from collections.abc import Iterator

from lab.checks import streams
from lab.checks.streams import SANITIZED, UNITS, verdict_row
from lab.measure.records import Record, Row
from lab.streams.programs import find
from lab.streams.verdict import examine

ENVIRONMENT = {"device": "gpu", "torch": "2", "python": "3", "lab": "1", "date": "today", "cuda": "12.8"}


def stream_records(patch) -> Iterator[Record]:
    patch.setattr(streams, "run_on_cuda", lambda program, variant: (examine(variant.run, variant.want), None))
    yield record("e1-hand-off", [verdict_row(n, v) for n in ("handoff", "war") for v in find(n).variants])
    runs = [
        {"program": "raw", "variant": v.name, "runs": 20, "right_runs": 20 * bool(v.right), "match": True}
        for v in find("raw").variants
    ]
    yield record("e2-missing-wait", runs)
    reports = [{"program": p, "variant": v, "reported": reported, "match": True} for p, v, reported in SANITIZED]
    yield record("e2-sanitizer", reports)
    copy = {"what": "copy_", "bytes": 4000, "host_us": None, "device_us": 2.0, "gb_per_s": 4.0}
    yield record("e0-unit-costs", [copy])
    hand_off = [{"how": how, "bytes": 2**24, "us": us} for how, us in (("event", 2.0), ("event and clone", 30.0))]
    yield record("e3-price-against-bytes", hand_off)
    edge = {"how": "graph", "kernels": 100, "one_stream_us": 100.0, "two_streams_us": 300.0, "us_per_edge": 2.0}
    yield record("e4-edge", [edge])
    overlap = {"n": 64, "products": 20, "gated": True, "one_stream_us": 30.0, "two_streams_us": 20.0, "speed_up": 1.5}
    yield record("e5-overlap", [overlap])
    hidden = {"what": "x.clone()", "device_copies": 1, "device_bytes": 4096, "kernels": 0, "allocations": 1,
              "shares_storage": False, "match": True}  # fmt: skip
    yield record("e11-hidden-copies", [hidden])


def record(name: str, rows: list[Row]) -> Record:
    units = {column: unit for column, unit in UNITS.items() if column in rows[0]}
    return Record(f"streams-{name}", {}, rows, ENVIRONMENT, units)
