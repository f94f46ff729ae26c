"""`lab trace`: is a file a trace that Perfetto opens, and what is in it."""

import argparse
from dataclasses import asdict
from pathlib import Path

from lab.commands.common import Subparsers, print_json


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("trace", help="check a trace that --trace wrote, for ui.perfetto.dev")
    parser.add_argument("file", type=Path, help="the trace, JSON in Chrome's Trace Event Format")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.perfetto.validate import read_trace

    contents = read_trace(args.file)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in contents.kinds.items())
    print(f"{args.file}: {contents.tracks} tracks, {kinds}; {(contents.end - contents.start) / 1000:,.3f} ms")
    for counter in contents.counters:
        print(f"counter: {counter}")
    if args.json:
        print_json(asdict(contents))
    return 0
