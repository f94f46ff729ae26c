"""`lab generate`: continue a text."""

import argparse

from lab.commands.common import (
    Subparsers,
    add_model_arguments,
    add_trace_argument,
    load_model,
    print_json,
    require_place,
    write_json,
)


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("generate", help="continue a text")
    parser.add_argument("prompt", help="the text to continue")
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    add_trace_argument(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.core import SamplingParams
    from lab.engine import Engine
    from lab.perfetto.run import run_document

    require_place(args.trace)
    sampling = SamplingParams(args.max_tokens, args.temperature, args.top_p, args.seed)
    model = load_model(args)
    limits = {"max_num_batched_tokens": args.max_num_batched_tokens, "max_num_seqs": args.max_num_seqs}
    engine = Engine(model, attention=args.attention, block_size=args.block_size, **limits)
    request = engine.submit(engine.chat(args.prompt) if args.chat else args.prompt, sampling)
    for piece in engine.pieces(engine.tokens(request)):
        print(piece, end="", flush=True)
    print()
    if args.trace:
        write_json(args.trace, run_document(engine.loop.trace))
    if args.json:
        completion = engine.completion(request)
        print_json(vars(completion) | {"prompt": args.prompt, "finish_reason": completion.finish_reason.value})
    return 0


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-tokens", type=int, default=32, help="tokens to generate at most (32)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (0)")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus sampling (1)")
    parser.add_argument("--chat", action="store_true", help="put the prompt in the model's chat template")
    parser.add_argument("--max-num-batched-tokens", type=int, help="token budget of a step, which cuts the prompt")
    parser.add_argument("--max-num-seqs", type=int, help="requests running at once")
