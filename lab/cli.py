"""`python -m lab`: the experiments of the book as commands.

Exit status: 0 all is well, 1 a check found a mismatch, 2 the input was wrong (one line says what). With `--json` the
last line of standard output is one JSON document.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.core.config import require_at_least
from lab.core.errors import LabError

if TYPE_CHECKING:
    from lab.model.weights import LoadedModel

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A minimal LLM inference runtime to learn from.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    conform = commands.add_parser("conform", help="replay golden runs of vLLM's scheduler and compare every step")
    conform.add_argument("file", type=Path, nargs="+", help="golden runs, one JSON object a line")
    conform.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    conform.set_defaults(command=run_conform)

    prefill = commands.add_parser("prefill", help="compare a prompt in chunks with the whole: KV, logits, memory, time")
    add_model_arguments(prefill)
    prefill.add_argument("--prompt-tokens", type=int, default=512, help="length of a seeded random prompt (512)")
    prefill.add_argument("--prompt", help="a text in place of random tokens")
    prefill.add_argument("--chunk-sizes", type=int_list, default=[64, 256], help="comma-separated (64,256)")
    prefill.add_argument("--repeats", type=int, default=3, help="timed runs of each chunk size (3)")
    prefill.set_defaults(command=run_prefill)

    generate = commands.add_parser("generate", help="continue a text")
    generate.add_argument("prompt", help="the text to continue")
    add_model_arguments(generate)
    add_sampling_arguments(generate)
    generate.set_defaults(command=run_generate)

    doctor = commands.add_parser("doctor", help="what this machine has, what lab chose, and why")
    add_model_arguments(doctor)
    doctor.set_defaults(command=run_doctor)
    return parser


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="tiny", help="tiny (random), smollm2, a directory, a .gguf or a hub id")
    parser.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    parser.add_argument("--dtype", help="float32, bfloat16, float16 or float64; the default suits the device")
    parser.add_argument("--attention", help="varlen, sdpa or math; the default is the fastest that works")
    parser.add_argument("--block-size", type=int, default=16, help="tokens per KV block (16)")
    parser.add_argument("--seed", type=int, default=0, help="of random weights, prompts and samples (0)")
    parser.add_argument("--threads", type=int, help="CPU threads of PyTorch; the default is PyTorch's")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-tokens", type=int, default=32, help="tokens to generate at most (32)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (0)")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus sampling (1)")
    parser.add_argument("--chat", action="store_true", help="put the prompt in the model's chat template")
    parser.add_argument("--max-num-batched-tokens", type=int, help="token budget of a step, which cuts the prompt")
    parser.add_argument("--max-num-seqs", type=int, help="requests running at once")


def int_list(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma-separated list of numbers") from None


def print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False))


# -- the commands: each imports what it needs, so that `conform` starts without torch ---------------------------------


def run_conform(args: argparse.Namespace) -> int:
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


def run_prefill(args: argparse.Namespace) -> int:
    from lab.checks.equivalence import check_prefill, random_prompt
    from lab.checks.report import as_json, as_table
    from lab.measure.environment import environment

    model = load(args)
    decoder = model.decoder
    prompt = model.encode(args.prompt) if args.prompt else random_prompt(decoder, args.prompt_tokens, args.seed)
    report = check_prefill(
        decoder, prompt, args.chunk_sizes, attention=args.attention, block_size=args.block_size, repeats=args.repeats
    )
    print(f"{model.name} ({model.source})")
    print(as_table(report))
    if args.json:
        print_json({"model": model.name, **as_json(report), "environment": environment(decoder.device)})
    return int(not report.ok)


def run_generate(args: argparse.Namespace) -> int:
    from lab.core import SamplingParams
    from lab.engine import Engine

    sampling = SamplingParams(args.max_tokens, args.temperature, args.top_p, args.seed)
    model = load(args)
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


def run_doctor(args: argparse.Namespace) -> int:
    from lab.measure.environment import environment
    from lab.model.attention import select_backend
    from lab.model.device import dtype_name

    decoder = load(args).decoder
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


def load(args: argparse.Namespace) -> "LoadedModel":
    import torch

    from lab.model.device import disable_tf32
    from lab.model.weights import load_model

    if args.threads is not None:
        require_at_least("threads", args.threads, 1)
        torch.set_num_threads(args.threads)
    disable_tf32()
    return load_model(args.model, dtype=args.dtype, device=args.device, seed=args.seed)
