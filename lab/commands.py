"""What each command of `python -m lab` does. Each imports what it needs, so that `conform` starts without torch."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lab.core.config import require_at_least
from lab.core.errors import ConfigError

if TYPE_CHECKING:
    from lab.model.weights import LoadedModel

MAX_THREADS = 1024  # far above any gain; PyTorch would take the process down with it for a number it can't start


def print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False))


def replay(args: argparse.Namespace) -> int:
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


def prefill(args: argparse.Namespace) -> int:
    from lab.checks.equivalence import check_prefill, random_prompt
    from lab.checks.report import as_json, as_table
    from lab.measure.environment import environment

    model = load_model(args)
    decoder = model.decoder
    if args.prompt is None:
        limit = decoder.config.max_position_embeddings
        if args.prompt_tokens > limit:  # before as many are drawn
            raise ConfigError(
                f"prompt-tokens is {args.prompt_tokens}, above the position limit of {limit}; ask for fewer"
            )
        prompt = random_prompt(decoder, args.prompt_tokens, args.seed)
    else:
        prompt = model.encode(args.prompt)
    report = check_prefill(
        decoder, prompt, args.chunk_sizes, attention=args.attention, block_size=args.block_size, repeats=args.repeats
    )
    print(f"{model.name} ({model.source})")
    print(as_table(report))
    if args.json:
        print_json({"model": model.name, **as_json(report), "environment": environment(decoder.device)})
    return int(not report.ok)


def generate(args: argparse.Namespace) -> int:
    from lab.core import SamplingParams
    from lab.engine import Engine

    sampling = SamplingParams(args.max_tokens, args.temperature, args.top_p, args.seed)
    model = load_model(args)
    limits = {"max_num_batched_tokens": args.max_num_batched_tokens, "max_num_seqs": args.max_num_seqs}
    engine = Engine(model, attention=args.attention, block_size=args.block_size, **limits)
    request = engine.submit(engine.chat(args.prompt) if args.chat else args.prompt, sampling)
    for piece in engine.pieces(engine.tokens(request)):
        print(piece, end="", flush=True)
    print()
    if args.json:
        completion = engine.completion(request)
        print_json(vars(completion) | {"prompt": args.prompt, "finish_reason": completion.finish_reason.value})
    return 0


def doctor(args: argparse.Namespace) -> int:
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


def record(args: argparse.Namespace) -> int:
    from lab.checks.suite import SUITES
    from lab.measure.records import save

    ok = True
    for record, passed in SUITES[args.suite](args.model, args.device, args.seed):
        path = save(record, args.out) if args.out else save(record)
        print(f"{path}: {len(record.rows)} rows, {'all match' if passed else 'MISMATCH'}")
        ok = ok and passed
    return int(not ok)


def compare(args: argparse.Namespace) -> int:
    from lab.measure import records

    a, b = records.load(args.a), records.load(args.b)
    rows = records.compare(a, b, vary=args.vary)
    for row in rows:
        settings = ", ".join(f"{name} {value}" for name, value in row.items() if name not in a.units)
        print(settings)
        for name, unit in a.units.items():
            left, right = row[name]
            ratio = f"  x {right / left:.3f}" if left else ""
            print(f"  {name:>20}  {left} -> {right} {unit}{ratio}")
    if args.json:
        print_json({"rows": rows})
    return 0


def load_model(args: argparse.Namespace) -> "LoadedModel":
    import torch

    from lab.model import weights
    from lab.model.device import disable_tf32

    if args.threads is not None:
        require_at_least("threads", args.threads, 1)
        if args.threads > MAX_THREADS:
            raise ConfigError(f"threads is {args.threads}; it must be at most {MAX_THREADS}")
        torch.set_num_threads(args.threads)
    disable_tf32()
    return weights.load_model(args.model, dtype=args.dtype, device=args.device, seed=args.seed)
