"""`lab record`: run a suite of experiments and keep what was measured."""

import argparse
from pathlib import Path

from lab.commands.common import Subparsers


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("record", help="run a suite of experiments and keep what was measured")
    parser.add_argument("--suite", choices=["prefill"], default="prefill", help="which experiments (prefill)")
    parser.add_argument("--model", default="smollm2", help="as for the other commands (smollm2)")
    parser.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and prompts (0)")
    parser.add_argument("--out", type=Path, help="folder of the records (data/records)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.checks.suite import SUITES
    from lab.measure.records import save

    ok = True
    for record, passed in SUITES[args.suite](args.model, args.device, args.seed):
        path = save(record, args.out) if args.out else save(record)
        print(f"{path}: {len(record.rows)} rows, {'all match' if passed else 'MISMATCH'}")
        ok = ok and passed
    return int(not ok)
