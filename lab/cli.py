"""`python -m lab`: the experiments of the book as commands.

Exit status: 0 all is well, 1 a check found a mismatch, 2 the input was wrong (one line says what). With `--json` the
last line of standard output is one JSON document.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import commands
from lab.core.errors import LabError

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A minimal LLM inference runtime to learn from.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    conform = subparsers.add_parser("conform", help="replay golden runs of vLLM's scheduler and compare every step")
    conform.add_argument("file", type=Path, nargs="+", help="golden runs, one JSON object a line")
    conform.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    conform.set_defaults(command=commands.replay)

    prefill = subparsers.add_parser("prefill", help="a prompt in chunks beside the whole: KV, logits, memory, time")
    add_model_arguments(prefill)
    prefill.add_argument("--prompt-tokens", type=int, default=512, help="length of a seeded random prompt (512)")
    prefill.add_argument("--prompt", help="a text in place of random tokens")
    prefill.add_argument("--chunk-sizes", type=int_list, default=[64, 256], help="comma-separated (64,256)")
    prefill.add_argument("--repeats", type=int, default=3, help="timed runs of each chunk size (3)")
    prefill.set_defaults(command=commands.prefill)

    generate = subparsers.add_parser("generate", help="continue a text")
    generate.add_argument("prompt", help="the text to continue")
    add_model_arguments(generate)
    add_sampling_arguments(generate)
    generate.set_defaults(command=commands.generate)

    doctor = subparsers.add_parser("doctor", help="what this machine has, what lab chose, and why")
    add_model_arguments(doctor)
    doctor.set_defaults(command=commands.doctor)

    record = subparsers.add_parser("record", help="run a suite of experiments and keep what was measured")
    record.add_argument("--suite", choices=["prefill"], default="prefill", help="which experiments (prefill)")
    record.add_argument("--model", default="smollm2", help="as for the other commands (smollm2)")
    record.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    record.add_argument("--seed", type=int, default=0, help="of random weights and prompts (0)")
    record.add_argument("--out", type=Path, help="folder of the records (data/records)")
    record.set_defaults(command=commands.record)

    compare = subparsers.add_parser("compare", help="two records side by side, if they are alike")
    compare.add_argument("a", type=Path)
    compare.add_argument("b", type=Path)
    compare.add_argument("--vary", nargs="+", default=[], metavar="FIELD", help="fields that may differ")
    compare.add_argument("--json", action="store_true", help="print one JSON document on the last line")
    compare.set_defaults(command=commands.compare)
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
