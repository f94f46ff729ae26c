"""What `lab sweep` and `lab tune` share: the load, what its steps cost, the KV pool, and where trials run."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.commands.common import int_list
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.errors import ConfigError

if TYPE_CHECKING:
    from lab.measure.budget import KVBudget
    from lab.sim.cost_model import CostModel
    from lab.sim.devices import Device
    from lab.sim.load import Load
    from lab.sim.stability import Criteria
    from lab.sim.trial import Setting
    from lab.sim.tune import RunAll

MAX_NUM_SEQS = (8, 16, 32, 64, 128, 256, 512)
MAX_NUM_BATCHED_TOKENS = (512, 1024, 2048, 4096, 8192)
Budget = Callable[[SchedulerConfig], "KVBudget"]


def add_serving_arguments(parser: argparse.ArgumentParser) -> None:
    load = parser.add_argument_group("load")
    load.add_argument("--trace", required=True, help="Azure's .csv, Mooncake's .jsonl, a load's .jsonl, or azure-conv")
    load.add_argument("--requests", type=int, default=1000, help="the first so many of it (1000)")
    load.add_argument("--slo", help="limits of the p99, like ttft=1s,itl=50ms; none if not given")
    cost = parser.add_argument_group("what a step takes").add_mutually_exclusive_group(required=True)
    cost.add_argument("--cost-model", type=Path, metavar="FILE", help="as `lab calibrate` measured it")
    cost.add_argument("--gpu", help="as the data sheet of this GPU predicts it for --model: H100, RTX4090, ...")
    cost.add_argument("--step-ms", type=float, help="so much for each step, and --token-ms for each token in it")
    parser.add_argument("--token-ms", type=float, default=0.02, help="(0.02)")
    pool = parser.add_argument_group("KV pool: --kv-blocks, or what --model leaves of a GPU's memory")
    pool.add_argument("--kv-blocks", type=int, help="so many, whatever the setting")
    pool.add_argument("--model", help="a known model, a config.json or its directory; no weights")
    pool.add_argument("--gpu-memory", metavar="SIZE", help="like 24GiB; the default is --gpu's")
    pool.add_argument("--gpu-memory-utilization", type=float, default=0.9, help="share of it to use (0.9)")
    pool.add_argument("--block-size", type=int, default=16, help="tokens per block (16)")
    knobs = parser.add_argument_group("settings to try")
    knobs.add_argument("--policy", default="vllm", help="a name in lab.policies.POLICIES (vllm)")
    knobs.add_argument("--max-num-seqs", type=int_list, default=MAX_NUM_SEQS, help="(8,16,32,64,128,256,512)")
    knobs.add_argument(
        "--max-num-batched-tokens", type=int_list, default=MAX_NUM_BATCHED_TOKENS, help="(512,1024,2048,4096,8192)"
    )
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 is one for each core (-1)")
    parser.add_argument("--cluster", metavar="dask://HOST:PORT", help="run on this Dask cluster instead")
    parser.add_argument("--json", action="store_true", help="print one JSON document on the last line")


def read_criteria(args: argparse.Namespace) -> "Criteria":
    from lab.sim.stability import Criteria, parse_slo

    return Criteria() if args.slo is None else Criteria(slo=parse_slo(args.slo))


def choose_runner(args: argparse.Namespace) -> "RunAll":
    from lab.sweep import on_cluster, on_processes

    if args.cluster is not None:
        return on_cluster(args.cluster, progress=True)
    return on_processes(args.jobs, progress=True)


def choose_cost(args: argparse.Namespace) -> "CostModel":
    from lab.sim.cost_model import LinearCost
    from lab.sim.devices import ModelShape, predict
    from lab.sim.step_cost import load_step_cost

    if args.cost_model is not None:
        return load_step_cost(args.cost_model)
    if args.step_ms is not None:
        return LinearCost(args.step_ms, args.token_ms)
    if args.model is None:
        raise ConfigError(f"--gpu {args.gpu} needs --model: what a step takes depends on both")
    import torch

    from lab.measure.ledger import kv_bytes, weight_bytes
    from lab.measure.presets import find_config

    config, dtype = find_config(args.model), torch.bfloat16
    params = weight_bytes(config, dtype) // dtype.itemsize
    return predict(find_gpu(args.gpu), ModelShape(args.model, params, kv_bytes(config, 1, dtype), dtype.itemsize))


def find_gpu(name: str) -> "Device":
    from lab.sim.devices import DEVICES

    found = {key.lower().replace(" ", ""): device for key, device in DEVICES.items()}
    device = found.get(name.lower().replace(" ", ""))
    if device is None:
        raise ConfigError(f"GPU {name!r} has no data sheet here; there is {', '.join(DEVICES)}")
    return device


def choose_budget(args: argparse.Namespace, load: "Load") -> Budget | None:
    """Where the GPU's memory goes under a setting; None if --kv-blocks fixes the pool."""
    if args.kv_blocks is not None:
        return None
    if args.model is None or (args.gpu is None and args.gpu_memory is None):
        raise ConfigError("the KV pool has no size; give --kv-blocks, or --model with --gpu or --gpu-memory")
    from lab.measure.budget import kv_budget
    from lab.measure.presets import find_config
    from lab.measure.units import parse_bytes

    config = find_config(args.model)
    memory = int(find_gpu(args.gpu).memory_bytes) if args.gpu_memory is None else parse_bytes(args.gpu_memory)

    def budget(limits: SchedulerConfig) -> "KVBudget":
        return kv_budget(
            config,
            memory,
            gpu_memory_utilization=args.gpu_memory_utilization,
            max_num_batched_tokens=limits.max_num_batched_tokens,
            max_num_seqs=limits.max_num_seqs,
            max_model_len=load.max_model_len,
            block_size=args.block_size,
        )

    return budget


def choose_settings(args: argparse.Namespace, load: "Load", budget: Budget | None) -> "list[Setting]":
    """The grid. Raises ConfigError if no setting of it leaves room for the longest request of the load."""
    from lab.policies import find_policy
    from lab.sweep import grid

    find_policy(args.policy)  # raises for a name that is none

    def pool(limits: SchedulerConfig) -> CacheConfig | None:
        if budget is None:
            return CacheConfig(args.kv_blocks, args.block_size)
        num_blocks = budget(limits).num_blocks - 1  # vLLM keeps one to itself
        return CacheConfig(num_blocks, args.block_size) if num_blocks * args.block_size >= load.max_model_len else None

    settings = grid(args.max_num_seqs, args.max_num_batched_tokens, pool, args.policy)
    if not settings:
        smallest = SchedulerConfig.with_defaults(max_num_batched_tokens=min(args.max_num_batched_tokens))
        if budget is not None:
            budget(smallest).require_room_for(load.max_model_len)
        raise ConfigError("no setting is left to try: every max_num_seqs is above every max_num_batched_tokens")
    return settings


COLUMNS = {
    "speed": "speed",
    "kv_blocks": "blocks",
    "max_num_seqs": "seqs",
    "max_num_batched_tokens": "budget",
    "output_tokens_per_s": "tokens/s",
    "ttft_p99_ms": "TTFT p99 ms",
    "itl_p99_ms": "ITL p99 ms",
    "preemptions": "preemptions",
    "verdict": "verdict",
    "because": "because",
}


def rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of `lab.sweep.table_row`, aligned."""
    lines = [list(COLUMNS.values()), *([_cell(row[name]) for name in COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)][:-1]
    return "\n".join("  ".join([*map(str.rjust, line, widths), line[-1]]).rstrip() for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
