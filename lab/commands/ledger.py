"""`lab ledger`: what a model needs in memory, by chunk size."""

import argparse
from typing import TYPE_CHECKING, Any

from lab.commands.common import Subparsers, int_list, print_json

if TYPE_CHECKING:
    from lab.measure.what_if import WhatIfRow


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("ledger", help="what a model needs in memory, by chunk size, without running it")
    parser.add_argument("--what-if", required=True, metavar="MODEL", help="a known model, a config.json, a directory")
    parser.add_argument("--length", type=int, required=True, help="tokens of the prompt")
    parser.add_argument("--chunk-sizes", type=int_list, default=[512, 2048, 8192], help="(512,2048,8192) and the whole")
    parser.add_argument("--dtype", default="bfloat16", help="float32, bfloat16, float16 or float64 (bfloat16)")
    parser.add_argument("--attention", default="sdpa", help="sdpa or math (sdpa)")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"], help="whose operations; none is needed")
    parser.add_argument("--block-size", type=int, default=16, help="tokens per KV block (16)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    import torch

    from lab.measure.presets import find_config
    from lab.measure.what_if import what_if
    from lab.model.device import parse_dtype

    config = find_config(args.what_if)
    dtype = parse_dtype(args.dtype, torch.device("cpu"))
    rows = what_if(
        config,
        args.length,
        [*args.chunk_sizes, args.length],
        dtype=dtype,
        attention=args.attention,
        device=torch.device(args.device),
        block_size=args.block_size,
    )
    print(f"{args.what_if}, {args.length} tokens, {args.dtype}, {args.attention}, operations of {args.device}")
    if args.length > config.max_position_embeddings:
        print(f"note: the model has {config.max_position_embeddings} positions; more are only counted here")
    print(as_table(rows))
    if args.json:
        print_json({"model": args.what_if, "length": args.length, "rows": [as_json(row) for row in rows]})
    return 0


def as_table(rows: "list[WhatIfRow]") -> str:
    from lab.measure.units import format_bytes

    head = ["chunk", "chunks", "transient", "counted", "highest in", *rows[0].parts, "KV", "weights", "total"]
    table = [head]
    for row in rows:
        after = (*row.parts.values(), row.kv_bytes, row.weight_bytes, row.total_bytes)
        numbers = [str(row.chunk_size), str(row.chunks), format_bytes(row.peak_bytes), format_bytes(row.measured_bytes)]
        table.append([*numbers, row.peak.name, *map(format_bytes, after)])
    widths = [max(map(len, column)) for column in zip(*table)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in table)


def as_json(row: "WhatIfRow") -> dict[str, Any]:
    return {
        "chunk_size": row.chunk_size,
        "chunks": row.chunks,
        "peak_bytes": row.peak_bytes,
        "measured_bytes": row.measured_bytes,
        "peak_moment": row.peak.name,
        "peak_parts": dict(row.peak.parts),
        "parts": row.parts,
        "kv_bytes": row.kv_bytes,
        "weight_bytes": row.weight_bytes,
        "total_bytes": row.total_bytes,
    }
