"""`lab compare`: two records side by side, if they are alike."""

import argparse
from pathlib import Path

from lab.commands.common import Subparsers, print_json


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("compare", help="two records side by side, if they are alike")
    parser.add_argument("a", type=Path)
    parser.add_argument("b", type=Path)
    parser.add_argument("--vary", nargs="+", default=[], metavar="FIELD", help="fields that may differ")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.measure import records

    a, b = records.load(args.a), records.load(args.b)
    rows = records.compare(a, b, vary=args.vary)
    for row in rows:
        settings = ", ".join(f"{name} {value}" for name, value in row.items() if name not in a.units)
        print(settings)
        for name, unit in a.units.items():
            left, right = row[name]
            numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))  # None if it was not measured
            ratio = f"  x {right / left:.3f}" if numbers and left else ""
            print(f"  {name:>20}  {left} -> {right} {unit}{ratio}")
    if args.json:
        print_json({"rows": rows})
    return 0
