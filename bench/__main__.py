"""`python -m bench`: every table, or those that are named."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers.utils import logging

from bench import browser, decode, memory, mixed, prefill, scheduler, sharing, simulators
from bench.neighbours import Neighbours, adopt_orphans, quiet_processors, start_as_on_a_quiet_machine
from bench.report import method, record, show, verdict
from bench.table import ROOT, Run, Table
from lab.core.errors import LabError
from lab.measure.records import make_folder, save
from lab.model.device import DTYPES

TABLES: dict[str, Table] = {  # in this order: those that end when they are through, then those with more rows than time
    "mixed": mixed.TABLE,
    "memory": memory.TABLE,
    "scheduler": scheduler.TABLE,
    "simulators": simulators.TABLE,
    "browser": browser.TABLE,
    "decode": decode.TABLE,
    "prefill": prefill.TABLE,
    "sharing": sharing.TABLE,
}
SECONDS = 38 * 60.0  # for all of them: the last has what is left
DEFAULT_DTYPES = ["bfloat16", "float32"]
RECORDS = ROOT / "data" / "bench"


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    adopt_orphans()
    args.threads = args.threads or quiet_processors()
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    try:
        if args.output:
            make_folder(args.output)
        end = time.monotonic() + SECONDS
        for name in args.table or [name for name, table in TABLES.items() if not table.by_name]:
            measure(name, args, end - time.monotonic())
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cut off; the tables before this one are whole", file=sys.stderr)
        return 130
    return 0


def measure(name: str, args: argparse.Namespace, seconds: float) -> None:
    """One table: measured, in so many seconds if it has rows to leave out, printed and, if it is whole, saved."""
    table, neighbours = TABLES[name], Neighbours()
    run = Run(args.repeats, args.threads, tuple(args.dtype), args.quick, min(seconds, table.seconds), args.trace)
    how = method(table, run)
    print(f"{name}: {table.title}; {how['clock']} time, {run.threads} threads, median of {how['repeats']}")
    rows = show(table, run)
    print(verdict(rows, run, neighbours))
    if rows and args.output:
        print("saved in", save(record(name, table, rows, run, neighbours), args.output))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    tables = f"of {', '.join(TABLES)}; default: all that need no half hour"
    parser.add_argument("table", nargs="*", type=table_name, metavar="TABLE", help=tables)
    parser.add_argument("--threads", type=at_least_one, help="default: all processors if they are idle, else 1")
    parser.add_argument("--repeats", type=at_least_one, default=5, help="rounds of a row, warm-up apart (default: 5)")
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=DEFAULT_DTYPES)
    parser.add_argument("--quick", action="store_true", help="a tiny model: does it run? Says nothing about speed")
    parser.add_argument("--trace", type=Path, help=f"for the simulators: {simulators.WHERE}; default: made up alike")
    parser.add_argument("--output", type=Path, help="where records go (default: data/bench, for whole tables only)")
    args = parser.parse_args(argv)
    if args.trace and not args.trace.is_file():
        parser.error(f"--trace {args.trace} is no file; {simulators.WHERE}")
    if args.output is None and not args.quick and args.dtype == DEFAULT_DTYPES:
        args.output = RECORDS
    return args


def table_name(text: str) -> str:
    """In place of argparse's `choices`, which want the empty list among them if none need be given."""
    if text not in TABLES:
        raise argparse.ArgumentTypeError(f"{text!r} is no table; there is {', '.join(TABLES)}")
    return text


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    start_as_on_a_quiet_machine()
    raise SystemExit(main())
