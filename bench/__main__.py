"""`python -m bench`: every table, or those that are named."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from bench import decode, prefill
from bench.contest import Contest, run
from bench.models import Pair, llama
from bench.neighbours import Neighbours
from bench.report import record, show, verdict
from lab.measure.records import save
from lab.model.device import DTYPES

TABLES: dict[str, Callable[..., list[Contest]]] = {"prefill": prefill.contests, "decode": decode.contests}
QUICK: dict[str, dict[str, Any]] = {
    "model": {"num_hidden_layers": 2, "hidden_size": 96, "intermediate_size": 256, "vocab_size": 512},
    "prefill": {"lengths": (96,), "chunk": 32},
    "decode": {"batch_sizes": (1, 3), "context": 24, "new_tokens": 4},
}
DEFAULT_DTYPES = ["float32", "bfloat16"]
ROOT = Path(__file__).parents[1] / "data" / "bench"


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    for name in args.table or TABLES:
        neighbours = Neighbours()
        print(f"{name}: milliseconds of processor time, {args.threads} threads, median of {args.repeats}")
        rows = show(measured(name, args))
        print(verdict(rows, neighbours))
        if args.output:
            print("saved in", save(record(name, rows, args.repeats, neighbours), args.output))
    return 0


def measured(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for dtype in args.dtype:
        pair: Pair = llama(DTYPES[dtype], **(QUICK["model"] if args.quick else {}))
        for contest in TABLES[name](pair, **(QUICK[name] if args.quick else {})):
            yield {"dtype": dtype, **run(contest, is_exact=pair.is_exact, repeats=args.repeats)}


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
        args.output = ROOT
    return args


if __name__ == "__main__":
    raise SystemExit(main())
