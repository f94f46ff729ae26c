"""`lab conform`: replay golden runs of vLLM's scheduler and compare every step."""

import argparse
from dataclasses import asdict
from pathlib import Path

from lab.commands.common import Subparsers, print_json


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("conform", help="replay golden runs of vLLM's scheduler and compare every step")
    parser.add_argument("file", type=Path, nargs="+", help="golden runs, one JSON object a line")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.checks.conform import conform

    results = {str(path): conform(path) for path in args.file}
    for path, result in results.items():
        for mismatch in result.mismatches:
            print(f"{path}: {mismatch}")
        print(
            f"{path}: {result.workloads} workloads, {result.steps} steps, {result.preemptions} preemptions, "
            f"{len(result.mismatches)} mismatches"
        )
    if args.json:
        print_json({path: asdict(result) for path, result in results.items()})
    return int(any(result.mismatches for result in results.values()))
