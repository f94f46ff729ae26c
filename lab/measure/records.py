"""Records of what was measured: small JSON files under `data/records/<device>/<experiment>.json`.

A record says what was run (`parameters`), what came out (`rows`), in which units, and where (`environment`). A column
with a unit was measured; a column without one is a setting of its row. Two records are compared row by row where the
settings agree, and not at all where something else differs: the error names the first field and both values.
"""

import json
import math
import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.core.errors import LabError

SCHEMA = 1
DATA = (Path(__file__).parents[1] / "data").resolve()  # in the repository a link to its own data folder
ROOT = DATA / "records"
FIELDS = {"schema": int, "experiment": str, "parameters": dict, "units": dict, "environment": dict, "rows": list}
ALIKE = ("device", "threads", "torch")  # what must agree of two environments; the device of a CPU run is the CPU's name

Row = Mapping[str, Any]


class RecordError(LabError, ValueError):
    """A record, or a file of one, that is not whole."""


class NotComparable(LabError, ValueError):
    """Two measurements that differ in more than what is being compared."""


@dataclass(frozen=True)
class Record:
    """One experiment on one device. All values are JSON values; `units` is {measured column: "ms", "bytes", ...}.

    Raises RecordError for rows that do not have the same columns, or a value that is no JSON value (NaN is none).
    """

    experiment: str
    parameters: Mapping[str, Any]
    rows: Sequence[Row]
    environment: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.experiment):
            raise RecordError(f"experiment {self.experiment!r} is no file name; use a-z, 0-9 and single '-'")
        device = self.environment.get("device")
        if not isinstance(device, str) or not device:
            raise RecordError(f"record {self.experiment}: environment lacks 'device'; use lab.measure.environment")
        _check(self.parameters, f"record {self.experiment}: parameters")
        _check(self.environment, f"record {self.experiment}: environment")
        for number, row in enumerate(self.rows):
            if not isinstance(row, Mapping):
                raise RecordError(f"record {self.experiment}: row {number} is a {type(row).__name__}, no object")
            if set(row) != set(self.rows[0]):
                odd = sorted(set(row) ^ set(self.rows[0]))
                raise RecordError(f"record {self.experiment}: row {number} and row 0 differ in columns {odd}")
            _check(row, f"record {self.experiment}: row {number}")
        if self.rows and (lacking := sorted(set(self.units) - set(self.rows[0]))):
            raise RecordError(f"record {self.experiment}: units are given for {lacking}, which no row has")

    def settings(self, row: Row) -> dict[str, Any]:
        """The columns of a row that were set, not measured."""
        return {name: value for name, value in row.items() if name not in self.units}


def path_of(record: Record, root: Path = ROOT) -> Path:
    return root / slug(record.environment["device"]) / f"{record.experiment}.json"


def slug(device: str) -> str:
    """The device as a folder name: "Intel(R) Xeon(R) CPU @ 2.20GHz" -> "intel-xeon-cpu-2-20ghz"."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", device.lower())).strip("-")


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there: asked for before hours of measuring. Raises RecordError if it can't be, or
    if nothing can be written into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise RecordError(f"cannot write into the folder {path}: {error.strerror}; give another") from None
    return path


def save(record: Record, root: Path = ROOT) -> Path:
    """Write the record where its device and experiment say. Returns the path."""
    return write(record, path_of(record, root))


def write(record: Record, path: Path) -> Path:
    """Write the record to this file, in one move; floats keep 6 digits. Returns the path.

    Raises RecordError if it can't be written, as on a full disk; what was there before is there still.
    """
    make_folder(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(dumps(record))
        os.chmod(temporary, 0o644)  # mkstemp's is for its owner alone
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise RecordError(f"cannot write {path}: {error.strerror}; make room, or give another folder") from None
        raise
    return path


def dumps(record: Record) -> str:
    """The file's text: keys sorted, one row a line, so that two versions of a record are read with `git diff`."""
    head = {"schema": SCHEMA, "experiment": record.experiment, "parameters": record.parameters}
    head |= {"units": record.units, "environment": record.environment}
    text = json.dumps(_rounded(head), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    rows = ",\n".join("  " + json.dumps(_rounded(row), ensure_ascii=False, allow_nan=False) for row in record.rows)
    return text.removesuffix("\n}") + ',\n "rows": [\n' + rows + "\n ]\n}\n"


def load(path: Path) -> Record:
    """Read a record. Raises RecordError naming the file and what is missing or wrong in it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"there is no record {path}; make one with `python -m lab record`") from None
    except (OSError, RecursionError, ValueError) as error:
        raise RecordError(f"{path} is not JSON: {error}; give a file that lab wrote") from None
    if not isinstance(data, dict):
        raise RecordError(f"{path} holds a {type(data).__name__}, not a record")
    for name, kind in FIELDS.items():
        if name not in data:
            raise RecordError(f"{path} lacks the field {name!r}")
        if not isinstance(data[name], kind):
            raise RecordError(f"{path}: {name!r} is a {type(data[name]).__name__}, not a {kind.__name__}")
    if data.pop("schema") != SCHEMA:
        raise RecordError(f"{path} has another schema than {SCHEMA}, which this lab reads; measure again")
    return Record(**{name: data[name] for name in FIELDS if name in data})


def find(
    experiment: str, parameters: Mapping[str, Any], environment: Mapping[str, Any], root: Path = ROOT
) -> Record | None:
    """The record that this run would make, if it is there whole: the same in all but rows and date."""
    wanted = Record(experiment, parameters, [], environment)
    try:
        found = load(path_of(wanted, root))
        require_alike(found.parameters, parameters, "parameter")
        require_alike(found.environment, environment, "environment", vary=["date"])
    except (RecordError, NotComparable):
        return None
    return found


def load_all(experiment: str, root: Path = ROOT) -> list[Record]:
    """The records of one experiment, of every device that ran it, by device."""
    return [load(path) for path in sorted(root.glob(f"*/{experiment}.json"))]


def require_alike(a: Mapping[str, Any], b: Mapping[str, Any], what: str, vary: Collection[str] = ()) -> None:
    """Raises NotComparable, naming the first field in which `a` and `b` differ and both values; `vary` may differ."""
    a, b = _rounded(a), _rounded(b)  # as they would be read back from their files
    for name in [*a, *(name for name in b if name not in a)]:
        if name not in vary and (name not in a or name not in b or a[name] != b[name]):
            left, right = (repr(side[name]) if name in side else "nothing" for side in (a, b))
            raise NotComparable(f"{what} {name!r} is {left} in one and {right} in the other; they are not comparable")


def compare(a: Record, b: Record, vary: Collection[str] = ()) -> list[dict[str, Any]]:
    """The rows of two records side by side: settings, then (a, b) for each measured column.

    All that is not measured must agree, but for the fields named in `vary`: what the comparison is about. Raises
    NotComparable with the first field that does not.
    """
    require_alike({"experiment": a.experiment}, {"experiment": b.experiment}, "the field", vary)
    require_alike(a.parameters, b.parameters, "parameter", vary)
    require_alike(a.units, b.units, "the unit of")
    here, there = ({name: record.environment.get(name) for name in ALIKE} for record in (a, b))
    require_alike(here, there, "environment", vary)
    if len(a.rows) != len(b.rows):
        raise NotComparable(f"one has {len(a.rows)} rows and the other {len(b.rows)}; they are not comparable")
    for number, (left, right) in enumerate(zip(a.rows, b.rows, strict=True)):
        require_alike(a.settings(left), b.settings(right), f"row {number}:", vary)
    return [
        a.settings(left) | {name: (left[name], right[name]) for name in a.units}
        for left, right in zip(a.rows, b.rows, strict=True)
    ]


def to_frame(record: Record) -> Any:
    """The rows as a pandas.DataFrame; `attrs` holds the rest but the name. Needs pandas, which lab does not."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise LabError("to_frame needs pandas, which is not installed; pip install pandas") from None
    frame = pandas.DataFrame([dict(row) for row in record.rows])
    frame.attrs = {"parameters": record.parameters, "units": record.units, "environment": record.environment}
    return frame


def _check(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check(item, f"{where}, {name!r}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(item, where)
    elif not (value is None or isinstance(value, (str, bool, int, float))):
        raise RecordError(f"{where} is a {type(value).__name__}; a record holds JSON values")
    elif isinstance(value, float) and not math.isfinite(value):
        raise RecordError(f"{where} is {value}, which JSON has no word for; use None")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, (list, tuple)) else value
