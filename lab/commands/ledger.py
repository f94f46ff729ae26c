"""`lab ledger`: memory of a model that need not be here: a prompt by chunk size, and the KV blocks of a GPU."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab.commands.common import Subparsers, aligned, int_list, print_json
from lab.core.config import DEFAULT_MAX_NUM_BATCHED_TOKENS, DEFAULT_MAX_NUM_SEQS
from lab.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from lab.measure.budget import KVBudget
    from lab.measure.what_if import WhatIfRow
    from lab.model.config import ModelConfig


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("ledger", help="memory of a model: a prompt by chunk size, the KV blocks of a GPU")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--what-if", metavar="MODEL", help="a known model, a config.json or its directory; no weights")
    which.add_argument("--model", help="as for the other commands: loaded, on this machine's device")
    parser.add_argument("--length", type=int, help="tokens of a prompt: its memory by chunk size")
    parser.add_argument("--chunk-sizes", type=int_list, default=[512, 2048, 8192], help="(512,2048,8192) and the whole")
    parser.add_argument("--gpu-memory", metavar="SIZE", help="like 24GiB: its KV blocks; --model has its device's")
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9, help="share of it to use (0.9)")
    budget = DEFAULT_MAX_NUM_BATCHED_TOKENS
    parser.add_argument("--max-num-batched-tokens", type=int_list, default=[budget], help=f"one or several ({budget})")
    parser.add_argument("--max-num-seqs", type=int, default=DEFAULT_MAX_NUM_SEQS, help=f"({DEFAULT_MAX_NUM_SEQS})")
    parser.add_argument("--max-model-len", type=int, help="longest request; the default is the model's positions")
    parser.add_argument("--dtype", help="float32, bfloat16, float16 or float64; --what-if has bfloat16")
    parser.add_argument("--attention", default="sdpa", help="sdpa or math (sdpa)")
    parser.add_argument("--device", help="cpu or cuda; --what-if has cuda and needs none")
    parser.add_argument("--block-size", type=int, default=16, help="tokens per KV block (16)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    config, dtype, device = _model(args)
    memory = _gpu_memory(args, device)
    if args.length is None and memory is None:
        raise ConfigError("nothing to compute; give --length for a prompt, or --gpu-memory for the KV blocks of a GPU")
    name = args.what_if or args.model
    print(f"{name}, {str(dtype).removeprefix('torch.')}, {args.attention}, operations of {device.type}")
    document: dict[str, Any] = {"model": name}
    common = {"dtype": dtype, "attention": args.attention, "device": device, "block_size": args.block_size}
    if args.length is not None:
        document |= _prompt(args, config, common)
    if memory is not None:
        document |= _pool(args, config, memory, common)
    if args.json:
        print_json(document)
    return 0


def _model(args: argparse.Namespace) -> "tuple[ModelConfig, torch.dtype, torch.device]":
    import torch

    from lab.measure.presets import find_config
    from lab.model.device import parse_dtype
    from lab.model.weights import load_model

    if args.model is not None:
        decoder = load_model(args.model, dtype=args.dtype, device=args.device).decoder
        return decoder.config, decoder.dtype, decoder.device
    if args.device not in (None, "cpu", "cuda"):
        raise ConfigError(f"device {args.device!r} has no what-if; ask for 'cpu' or 'cuda'")
    dtype = parse_dtype(args.dtype or "bfloat16", torch.device("cpu"))
    return find_config(args.what_if), dtype, torch.device("cpu" if args.device == "cpu" else "cuda:0")


def _gpu_memory(args: argparse.Namespace, device: "torch.device") -> int | None:
    from lab.measure.units import parse_bytes
    from lab.model.device import total_memory

    if args.gpu_memory is not None:
        return parse_bytes(args.gpu_memory)
    return total_memory(device) if args.model is not None and args.length is None else None


def _prompt(args: argparse.Namespace, config: "ModelConfig", common: dict[str, Any]) -> dict[str, Any]:
    from lab.measure.what_if import what_if

    rows = what_if(config, args.length, [*args.chunk_sizes, args.length], **common)
    print(f"a prompt of {args.length} tokens by chunk size:")
    if args.length > config.max_position_embeddings:
        print(f"note: the model has {config.max_position_embeddings} positions; more are only counted here")
    print(prompt_table(rows))
    return {"length": args.length, "rows": [as_json(row) for row in rows]}


def prompt_table(rows: "Sequence[WhatIfRow]") -> str:
    from lab.measure.units import format_bytes

    head = ["chunk", "chunks", "transient", "counted", "highest in", *rows[0].parts, "KV", "weights", "total"]
    table = [head]
    for row in rows:
        after = (*row.parts.values(), row.kv_bytes, row.weight_bytes, row.total_bytes)
        numbers = [str(row.chunk_size), str(row.chunks), format_bytes(row.peak_bytes), format_bytes(row.measured_bytes)]
        table.append([*numbers, row.peak.name, *map(format_bytes, after)])
    return aligned(table)


def _pool(args: argparse.Namespace, config: "ModelConfig", memory: int, common: dict[str, Any]) -> dict[str, Any]:
    from lab.measure.budget import kv_budget

    length = config.max_position_embeddings if args.max_model_len is None else args.max_model_len
    limits = {
        "gpu_memory_utilization": args.gpu_memory_utilization,
        "max_num_seqs": args.max_num_seqs,
        "max_model_len": length,
    }
    budgets = [
        kv_budget(config, memory, max_num_batched_tokens=n, **limits, **common) for n in args.max_num_batched_tokens
    ]
    print(f"KV blocks of {args.block_size} tokens, requests of up to {length} tokens:")
    print(pool_table(budgets, length))
    for budget in budgets:
        budget.require_room_for(length)
    return {"max_model_len": length, "pools": [pool_as_json(budget, length) for budget in budgets]}


def pool_table(budgets: "Sequence[KVBudget]", length: int) -> str:
    from lab.measure.units import format_bytes

    table = [
        ["budget", "memory", "x share", "- weights", "- step", "= KV", "/ block", "= blocks", "tokens", "requests"]
    ]
    for b in budgets:
        sizes = (b.gpu_memory, b.requested, b.weights, b.transient, max(0, b.available), b.block_bytes)
        counts = [str(b.num_blocks), str(b.num_tokens), f"{b.concurrency(length):.2f}"]
        table.append([str(b.max_num_batched_tokens), *map(format_bytes, sizes), *counts])
    return aligned(table)


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


def pool_as_json(budget: "KVBudget", length: int) -> dict[str, Any]:
    return vars(budget) | {
        "requested": budget.requested,
        "available": budget.available,
        "num_blocks": budget.num_blocks,
        "num_tokens": budget.num_tokens,
        "concurrency": budget.concurrency(length),
    }
