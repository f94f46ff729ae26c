"""What several commands share: the arguments that choose a model, and how results are printed."""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.core.config import require_at_least
from lab.core.errors import ConfigError

if TYPE_CHECKING:
    from lab.model.weights import LoadedModel

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = Any

MAX_THREADS = 1024  # far above any gain; PyTorch would take the process down with it for a number it can't start


def print_json(document: dict[str, Any]) -> None:
    """In ASCII: a model's text may hold what others take for the end of a line."""
    print(json.dumps(document))


def add_trace_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="OUT.json", help="write the run for ui.perfetto.dev")


def require_place(path: Path | None) -> None:
    """Before the run whose trace it will hold. Raises ConfigError if its folder is none, or takes no files."""
    if path is not None and not os.access(path.parent, os.W_OK):
        raise ConfigError(f"cannot write {path}: {path.parent} is no folder that takes files; give another")


def write_text(path: Path, text: str) -> None:
    """Raises ConfigError if the file can't be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; give another file") from error


def write_json(path: Path, document: dict[str, Any]) -> None:
    write_text(path, json.dumps(document))


def aligned(table: Sequence[Sequence[str]]) -> str:
    """Rows of cells, each column to the right."""
    widths = [max(map(len, column)) for column in zip(*table)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in table)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    add_weights_arguments(parser)
    parser.add_argument("--block-size", type=int, default=16, help="tokens per KV block (16)")


def add_weights_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="tiny", help="tiny (random), smollm2, a directory, a .gguf or a hub id")
    parser.add_argument("--device", help="cpu or cuda; the default is the GPU where there is one")
    parser.add_argument("--dtype", help="float32, bfloat16, float16 or float64; the default suits the device")
    parser.add_argument("--attention", help="varlen, sdpa or math; the default is the fastest that works")
    parser.add_argument("--seed", type=int, default=0, help="of random weights, prompts and samples (0)")
    parser.add_argument("--threads", type=int, help="CPU threads of PyTorch; the default is PyTorch's")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")


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


def int_list(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma-separated list of numbers") from None
