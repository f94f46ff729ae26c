"""Records: what is written, what is refused, and which records may stand beside each other."""

import dataclasses
import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.core.errors import LabError
from lab.measure import records
from lab.measure.records import (
    NotComparable,
    Record,
    RecordError,
    compare,
    load,
    load_all,
    make_folder,
    save,
    slug,
    to_frame,
)

RECORD = Record(
    experiment="prefill",
    parameters={"model": "tiny", "dtype": "float16", "chunk_sizes": [64, 256]},
    units={"median_ms": "ms", "peak_bytes": "bytes"},
    environment={"device": "Tesla T4", "threads": 2, "torch": "2.13.0", "date": "2026-01-01T00:00:00Z"},
    rows=[
        {"chunk_size": 64, "median_ms": 2.5, "peak_bytes": 1000},
        {"chunk_size": 256, "median_ms": 1.25, "peak_bytes": 4000},
    ],
)


def changed(**fields: Any) -> Record:
    """RECORD with entries of its fields replaced or, by None, left out."""
    merged = {}
    for name, change in fields.items():
        whole = getattr(RECORD, name) | change if isinstance(change, dict) else change
        merged[name] = {k: v for k, v in whole.items() if v is not None} if isinstance(whole, dict) else whole
    return dataclasses.replace(RECORD, **merged)


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = save(RECORD, tmp_path)
    assert path == tmp_path / "tesla-t4" / "prefill.json"
    assert load(path) == RECORD
    text = path.read_text()
    assert save(load(path), tmp_path).read_text() == text  # stable
    assert [p.name for p in path.parent.iterdir()] == ["prefill.json"]
    lines = text.splitlines()
    assert '  {"chunk_size": 64, "median_ms": 2.5, "peak_bytes": 1000},' in lines  # one row a line
    assert len(text) < 700


def test_floats_are_short(tmp_path: Path) -> None:
    path = save(changed(rows=[{"chunk_size": 1, "median_ms": 1 / 3, "peak_bytes": 123456789}]), tmp_path)
    assert load(path).rows == [{"chunk_size": 1, "median_ms": 0.333333, "peak_bytes": 123456789}]


def test_records_of_every_device(tmp_path: Path) -> None:
    save(RECORD, tmp_path)
    save(changed(environment={"device": "Intel(R) Xeon(R) CPU @ 2.20GHz"}), tmp_path)
    save(changed(experiment="decode"), tmp_path)
    found = [record.environment["device"] for record in load_all("prefill", tmp_path)]
    assert found == ["Intel(R) Xeon(R) CPU @ 2.20GHz", "Tesla T4"]
    assert slug(found[0]) == "intel-xeon-cpu-2-20ghz"


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(RECORD, tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RecordError, match="prefill.json: No space left on device; make room"):
        save(changed(rows=[]), tmp_path)
    assert load(path) == RECORD
    assert [p.name for p in path.parent.iterdir()] == ["prefill.json"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no folder that nobody can write into")
def test_a_folder_that_takes_no_file_is_refused_before_the_work() -> None:
    with pytest.raises(RecordError, match="cannot write into the folder /proc: "):
        make_folder(Path("/proc"))


@pytest.mark.parametrize("name", ["schema", "experiment", "parameters", "units", "environment", "rows"])
def test_a_missing_field_is_named(name: str, tmp_path: Path) -> None:
    path = save(RECORD, tmp_path)
    data = json.loads(path.read_text())
    del data[name]
    path.write_text(json.dumps(data))
    with pytest.raises(RecordError, match=f"lacks the field '{name}'"):
        load(path)
    path.write_text(json.dumps(data | {name: 1.5}))
    with pytest.raises(RecordError, match=f"'{name}' is a float, not a"):
        load(path)


def test_files_that_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(RecordError, match="there is no record"):
        load(path)
    path.write_text('{"schema": 1')
    with pytest.raises(RecordError, match="is not JSON"):
        load(path)
    path.write_text("[]")
    with pytest.raises(RecordError, match="holds a list"):
        load(path)
    data = json.loads(save(RECORD, tmp_path).read_text())
    path.write_text(json.dumps(data | {"schema": 2}))
    with pytest.raises(RecordError, match="another schema than 1"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiment": "../prefill"}, "no file name"),
        ({"experiment": ""}, "no file name"),
        ({"environment": {"device": None}}, "lacks 'device'"),
        ({"environment": {"device": 7}}, "lacks 'device'"),
        ({"rows": [7]}, "row 0 is a int, no object"),
        ({"rows": [["chunk_size"]]}, "row 0 is a list, no object"),
        ({"rows": [{"a": 1, "median_ms": 1, "peak_bytes": 1}, {"median_ms": 1, "peak_bytes": 1}]}, r"columns \['a'\]"),
        ({"units": {"tokens": "1"}}, r"units are given for \['tokens'\]"),
        ({"rows": [{"median_ms": float("nan"), "peak_bytes": 1}]}, "row 0, 'median_ms' is nan"),
        ({"rows": [{"median_ms": 1j, "peak_bytes": 1}]}, "row 0, 'median_ms' is a complex"),
        ({"parameters": {"prompt": {1, 2}}}, "parameters, 'prompt' is a set"),
    ],
)
def test_records_that_are_not_whole(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        changed(**change)


def test_alike_records_are_compared() -> None:
    faster = changed(
        environment={"date": "2026-02-02T00:00:00Z"},
        rows=[
            {"chunk_size": 64, "median_ms": 2.0, "peak_bytes": 900},
            {"chunk_size": 256, "median_ms": 1.0, "peak_bytes": 4000},
        ],
    )
    assert compare(RECORD, faster) == [
        {"chunk_size": 64, "median_ms": (2.5, 2.0), "peak_bytes": (1000, 900)},
        {"chunk_size": 256, "median_ms": (1.25, 1.0), "peak_bytes": (4000, 4000)},
    ]


ROW = {"chunk_size": 64, "median_ms": 2.5, "peak_bytes": 1000}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: changed(experiment="decode"), "field 'experiment' is 'prefill' in one and 'decode'"),
        (lambda: changed(parameters={"dtype": "bfloat16"}), "parameter 'dtype' is 'float16' in one and 'bfloat16' in"),
        (lambda: changed(parameters={"model": None}), "parameter 'model' is 'tiny' in one and nothing in the other"),
        (lambda: changed(parameters={"seed": 1}), "parameter 'seed' is nothing in one and 1 in the other"),
        (lambda: changed(environment={"device": "L4"}), "environment 'device' is 'Tesla T4' in one and 'L4' in"),
        (lambda: changed(environment={"threads": 1}), "environment 'threads' is 2 in one and 1 in"),
        (lambda: changed(units={"median_ms": "s"}), "unit of 'median_ms' is 'ms' in one and 's' in"),
        (lambda: changed(rows=[ROW]), "one has 2 rows and the other 1"),
        (lambda: changed(rows=[ROW, ROW]), "row 1: 'chunk_size' is 256 in one and 64 in"),
    ],
)
def test_unlike_records_are_refused(other: Callable[[], Record], message: str) -> None:
    with pytest.raises(NotComparable, match=message) as error:
        compare(RECORD, other())
    assert isinstance(error.value, LabError) and "\n" not in str(error.value)


def test_a_fresh_record_compares_with_a_saved_one(tmp_path: Path) -> None:
    fresh = changed(parameters={"chunk_sizes": (64, 256), "load": 1 / 3})
    assert len(compare(fresh, load(save(fresh, tmp_path)))) == 2


def test_what_the_comparison_is_about_may_differ() -> None:
    other = changed(parameters={"dtype": "bfloat16"}, environment={"device": "L4"})
    with pytest.raises(NotComparable, match="'device'"):
        compare(RECORD, other, vary=["dtype"])
    assert len(compare(RECORD, other, vary=["dtype", "device"])) == 2


def test_to_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = to_frame(RECORD)
    assert list(frame.columns) == ["chunk_size", "median_ms", "peak_bytes"]
    assert frame["median_ms"].tolist() == [2.5, 1.25]
    assert frame.attrs["units"] == {"median_ms": "ms", "peak_bytes": "bytes"}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LabError, match="pip install pandas"):
        to_frame(RECORD)


def test_records_in_the_repository_are_whole() -> None:
    for path in records.ROOT.glob("*/*.json"):
        record = load(path)
        assert records.path_of(record) == path
        assert path.read_text() == records.dumps(record)
