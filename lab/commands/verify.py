"""`lab verify`: what records claim, computed again from their numbers."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from lab.commands.common import Subparsers


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("verify", help="check again, from the numbers, what records claim")
    parser.add_argument("paths", nargs="*", type=Path, help="records, and folders of them (data/records)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """One line a record, and one for each claim that does not hold; the status is 1 if there is any."""
    from lab.measure.records import ROOT

    failed = 0
    files = list(find_files(args.paths or [ROOT]))
    for path in files:
        claimed, found = examine(path)
        print(f"{path}: {'FAILED' if found else 'holds' if claimed else 'whole; nothing is claimed of it'}")
        for problem in found:
            print(f"  {problem}")
        failed += bool(found)
    print(f"{len(files)} records, {failed} failed")
    return int(failed > 0)


def find_files(paths: list[Path]) -> Iterator[Path]:
    """Raises RecordError for a folder that holds no record."""
    from lab.measure.records import RecordError

    for path in paths:
        found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not found:
            raise RecordError(f"there is no record in {path}; make some with `python -m lab record`")
        yield from found


def examine(path: Path) -> tuple[bool, list[str]]:
    """Whether anything is claimed of this record, and what does not hold."""
    from lab.checks import cost_models
    from lab.checks.claims import CLAIMS, problems, suite_of
    from lab.measure import records

    try:
        record = records.load(path)
    except records.RecordError as error:
        return True, [str(error)]
    found = problems(record)
    path_of = cost_models.path_of if record.experiment == cost_models.EXPERIMENT else records.path_of
    place = path_of(record, Path())
    if path.resolve().parts[-len(place.parts) :] != place.parts:
        found.append(f"its numbers are of {place.as_posix()}: it is in another's place")
    return suite_of(record) in CLAIMS, found
