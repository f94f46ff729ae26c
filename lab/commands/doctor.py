"""`lab doctor`: what this machine has, what lab chose, and why."""

import argparse

from lab.commands.common import Subparsers, add_model_arguments, load_model, print_json
from lab.core.config import require_at_least


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("doctor", help="what this machine has, what lab chose, and why")
    add_model_arguments(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.measure.environment import environment
    from lab.model.attention import select_backend
    from lab.model.device import dtype_name

    require_at_least("block_size", args.block_size, 1)
    decoder = load_model(args).decoder
    selected = select_backend(args.attention, decoder.config, decoder.device, decoder.dtype, args.block_size)
    report = {
        **environment(decoder.device),
        "dtype": dtype_name(decoder.dtype),
        "attention": selected.backend.name,
        "attention_reason": selected.reason,
    }
    for name, value in report.items():
        print(f"{name:>20}  {value}")
    if args.json:
        print_json(report)
    return 0
