"""The points of a map, and what a run says of each as a row."""

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from lab.core.config import CacheConfig, SchedulerConfig
from lab.sim.stability import Judgement
from lab.sim.trial import Outcome, Setting


def grid(
    max_num_seqs: Iterable[int],
    max_num_batched_tokens: Iterable[int],
    pool: Callable[[SchedulerConfig], CacheConfig | None],
    policy: str = "vllm",
) -> list[Setting]:
    """Every combination but those that `SchedulerConfig` refuses, a budget below max_num_seqs.

    `pool` says how large the KV pool is beside such limits, a larger budget may leave less memory for it; where it is
    None there is no room for one, and no setting.
    """
    configs = [SchedulerConfig(b, s) for s, b in product(max_num_seqs, max_num_batched_tokens) if s <= b]
    pools = ((config, pool(config)) for config in configs)
    return [Setting(config, cache, policy) for config, cache in pools if cache is not None]


def table_row(outcome: Outcome, judgement: Judgement) -> dict[str, Any]:
    """One line of the map, as JSON values: the knobs, the load, the verdict and what it rests on."""
    setting, summary = outcome.setting, outcome.summary
    return {
        "policy": setting.policy,
        "max_num_seqs": setting.config.max_num_seqs,
        "max_num_batched_tokens": setting.config.max_num_batched_tokens,
        "kv_blocks": setting.cache.num_blocks,
        "speed": outcome.speed,
        "verdict": judgement.verdict.value,
        "because": "; ".join(map(str, judgement.misses)),
        "output_tokens_per_s": summary.output_tokens_per_s,
        "ttft_p99_ms": _ms(summary.ttft.p99),
        "itl_p99_ms": _ms(summary.itl.p99),
        "preemptions": summary.preemptions,
        "useful_ratio": summary.useful_ratio,
        "queue_growth": outcome.growth,
        "kv_peak_blocks": summary.kv_peak_blocks,
        "max_waiting": summary.max_waiting,
    }


def _ms(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds * 1e3
