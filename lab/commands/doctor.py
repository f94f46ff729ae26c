"""`lab doctor`: what this machine has, what lab chose, and why."""

import argparse
from typing import TYPE_CHECKING, Any

from lab.commands.common import Subparsers, add_model_arguments, load_model, print_json
from lab.core.config import require_at_least

if TYPE_CHECKING:
    import torch


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
        "dtype_reason": "asked for" if args.dtype else why_dtype(decoder.device),
        "attention": selected.backend.name,
        "attention_reason": selected.reason,
    }
    for name, value in report.items():
        print(f"{name.removesuffix('_bytes').replace('_', ' '):>18}  {for_people(name, value)}")
    if args.json:
        print_json(report)
    return 0


def for_people(name: str, value: Any) -> str:
    from lab.measure.units import format_bytes

    if value is None:
        return "-"
    return format_bytes(value) if name.endswith("_bytes") else str(value)


def why_dtype(device: "torch.device") -> str:
    """Why the dtype is what `lab.model.device.parse_dtype` takes for this device where none is asked for."""
    from lab.model.device import BFLOAT16_CAPABILITY, capability

    has = capability(device)
    if has is None:
        return "the default on a CPU"
    needs, found = (".".join(map(str, version)) for version in (BFLOAT16_CAPABILITY, has))
    verb = "has" if has >= BFLOAT16_CAPABILITY else "lacks"
    return f"compute capability {found} {verb} the arithmetic of bfloat16, which begins with {needs}"
