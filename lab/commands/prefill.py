"""`lab prefill`: a prompt in chunks beside the whole: KV, logits, memory, time."""

import argparse

from lab.commands.common import Subparsers, add_model_arguments, int_list, load_model, print_json
from lab.core.errors import ConfigError


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("prefill", help="a prompt in chunks beside the whole: KV, logits, memory, time")
    add_model_arguments(parser)
    parser.add_argument("--prompt-tokens", type=int, default=512, help="length of a seeded random prompt (512)")
    parser.add_argument("--prompt", help="a text in place of random tokens")
    parser.add_argument("--chunk-sizes", type=int_list, default=[64, 256], help="comma-separated (64,256)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each chunk size (3)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
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
