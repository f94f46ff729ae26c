"""`lab tune`: the setting that is farthest from the wall for a load and an SLO, and its flags for vLLM and SGLang."""

import argparse
import math
from typing import TYPE_CHECKING, Any

from lab.commands.common import Subparsers, print_json
from lab.commands.serving import (
    Budget,
    add_serving_arguments,
    choose_budget,
    choose_cost,
    choose_runner,
    choose_settings,
    read_criteria,
    rows_table,
)

if TYPE_CHECKING:
    from lab.sim.load import Load
    from lab.sim.trial import Setting
    from lab.sim.tune import NearMiss, Tuned


def add_to(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "tune", help="the best setting for a load and an SLO, and how far it is from the wall"
    )
    add_serving_arguments(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    from lab.sim.load import read_load
    from lab.sim.tune import Tuned, tune
    from lab.sweep import table_row

    criteria = read_criteria(args)
    load, cost = read_load(args.trace, args.requests), choose_cost(args)
    budget = choose_budget(args, load)
    settings = choose_settings(args, load, budget)
    print(f"{args.trace}: {len(load.shapes)} requests, {load.rate:.3g} a second")
    result = tune(settings, load, cost, criteria, choose_runner(args))
    rows = [table_row(*pair) for pair in result.tried]
    print(rows_table(rows))
    if isinstance(result, Tuned):
        document = report(result, load, budget)
    else:
        document = report_miss(result, load, budget)
    if args.json:
        print_json(document | {"rows": rows})
    return 0 if isinstance(result, Tuned) else 1


def report(tuned: "Tuned", load: "Load", budget: Budget | None) -> dict[str, Any]:
    config, wall = tuned.outcome.setting.config, tuned.wall
    lines = flags(tuned.outcome.setting, load, budget)
    print(f"best: max_num_seqs {config.max_num_seqs}, max_num_batched_tokens {config.max_num_batched_tokens}")
    if math.isinf(wall.breaks):
        print(f"margin: still stable at {wall.holds:.3g} requests/s, {wall.holds / tuned.rate:.0f} times this load")
    else:
        print(
            f"margin: {tuned.margin:+.0%}; stable up to {wall.holds:.3g} requests/s, and at {wall.breaks:.3g} "
            f"{wall.because.verdict.value}: {'; '.join(map(str, wall.because.misses))}"
        )
    load_of_outcome = tuned.rate * tuned.outcome.speed
    print(f"under {load_of_outcome:.3g} requests/s max_num_seqs may be up to {tuned.most_seqs}")
    for server, line in lines.items():
        print(f"{server}: {line}")
    return {
        "max_num_seqs": config.max_num_seqs,
        "max_num_batched_tokens": config.max_num_batched_tokens,
        "kv_blocks": tuned.outcome.setting.cache.num_blocks,
        "rate": tuned.rate,
        "stable_rate": wall.holds,
        "margin": tuned.margin,
        "most_seqs": tuned.most_seqs,
        "flags": lines,
    }


def report_miss(miss: "NearMiss", load: "Load", budget: Budget | None) -> dict[str, Any]:
    config = miss.outcome.setting.config
    worst = max(miss.judgement.misses, key=lambda m: m.factor)
    print(
        f"no setting is stable under this load; the nearest, max_num_seqs {config.max_num_seqs} with "
        f"max_num_batched_tokens {config.max_num_batched_tokens}, misses by {worst.factor:.3g} times: {worst}"
    )
    if miss.lower is None:
        print("nor under any lower load that was tried; loosen the SLO, or enlarge the pool")
    else:
        print(f"a load of {miss.lower.wall.holds:.3g} requests/s would hold:")
    return {
        "max_num_seqs": None,
        "lower": None if miss.lower is None else report(miss.lower, load, budget),
        "nearest": {"max_num_seqs": config.max_num_seqs, "max_num_batched_tokens": config.max_num_batched_tokens},
        "misses": list(map(str, miss.judgement.misses)),
    }


def flags(setting: "Setting", load: "Load", budget: Budget | None) -> dict[str, str]:
    """The setting as each server is told it; without a GPU the pool's size is told in place of its share of memory.

    With one the longest request of the load is told too: the memory was reckoned for no longer one.

    SGLang mixes decodes into chunks only if asked to, and counts weights and KV, not the rest, as its static share.
    """
    seqs, tokens = setting.config.max_num_seqs, setting.config.max_num_batched_tokens
    vllm = f"--max-num-seqs {seqs} --max-num-batched-tokens {tokens}"
    sglang = f"--max-running-requests {seqs} --chunked-prefill-size {tokens} --enable-mixed-chunk"
    if budget is None:
        vllm += f" --block-size {setting.cache.block_size} --num-gpu-blocks-override {setting.cache.num_blocks + 1}"
        sglang += f" --max-total-tokens {setting.cache.num_tokens}"
    else:
        room = budget(setting.config)
        static = (room.weights + room.num_blocks * room.block_bytes) / room.gpu_memory
        vllm += f" --gpu-memory-utilization {room.gpu_memory_utilization:g} --max-model-len {load.max_model_len}"
        sglang += f" --mem-fraction-static {math.floor(static * 1000) / 1000:g} --context-length {load.max_model_len}"
    return {"vLLM": f"vllm serve MODEL {vllm}", "SGLang": f"python -m sglang.launch_server --model-path MODEL {sglang}"}
