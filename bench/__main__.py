"""`python -m bench`: every table, or those that are named."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers.utils import logging

from bench import decode, memory, mixed, prefill, scheduler, simulators
from bench.neighbours import Neighbours
from bench.report import record, show, verdict
from bench.table import ROOT, Run, Skipped, Table
from lab.measure.records import save
from lab.model.device import DTYPES

TABLES: dict[str, Table] = {
    "prefill": prefill.TABLE,
    "decode": decode.TABLE,
    "mixed": mixed.TABLE,
    "memory": memory.TABLE,
    "scheduler": scheduler.TABLE,
    "simulators": simulators.TABLE,
}
DEFAULT_DTYPES = ["bfloat16", "float32"]
RECORDS = ROOT / "data" / "bench"


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    for name in args.table or TABLES:
        measure(name, args)
    return 0


def measure(name: str, args: argparse.Namespace) -> None:
    """One table: measured, printed and, if it is whole, saved."""
    table, neighbours = TABLES[name], Neighbours()
    run = Run(args.repeats, args.threads, tuple(args.dtype), args.quick, table.seconds)
    print(f"{name}: {table.title}; {run.threads} threads, median of {run.repeats}")
    try:
        rows = show(table.rows(run))
    except Skipped as why:
        print(f"skipped: {why}")
        return
    print(verdict(rows, run, neighbours))
    if args.output:
        print("saved in", save(record(name, table, rows, run, neighbours), args.output))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("table", nargs="*", choices=[[], *TABLES], help="default: all of them")
    parser.add_argument("--threads", type=int, default=1, help="more than 1 only on a quiet machine (default: 1)")
    parser.add_argument("--repeats", type=int, default=7, help="rounds of a row, warm-up apart (default: 7)")
    parser.add_argument("--dtype", nargs="*", choices=DTYPES, default=DEFAULT_DTYPES)
    parser.add_argument("--quick", action="store_true", help="a tiny model: does it run? Says nothing about speed")
    parser.add_argument("--output", type=Path, help="where records go (default: data/bench, for whole tables only)")
    args = parser.parse_args(argv)
    if args.output is None and not args.quick and args.dtype == DEFAULT_DTYPES:
        args.output = RECORDS
    return args


if __name__ == "__main__":
    raise SystemExit(main())
