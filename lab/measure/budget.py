"""How many KV blocks a GPU has room for, as vLLM computes it at start-up.

    budget = kv_budget(find_config("llama-3-8b"), 24 * 2**30, max_num_batched_tokens=2048)
    budget.num_blocks, budget.num_tokens, budget.concurrency(8192)

vLLM 0.33 (`v1/worker/gpu_worker.py`, `v1/core/kv_cache_utils.py`): of the GPU's memory take the share
`gpu_memory_utilization`; from it take the weights and the peak of one profiled step of `max_num_batched_tokens` tokens;
what remains is cut into blocks. It starts only if a request of `max_model_len` tokens fits. vLLM measures the step and
takes off what CUDA itself holds too; here the step is the ledger's, for the model alone, and vLLM keeps one of the
blocks to itself.
"""

from dataclasses import dataclass

import torch

from lab.core.config import DEFAULT_MAX_NUM_BATCHED_TOKENS, DEFAULT_MAX_NUM_SEQS, require_at_least
from lab.core.errors import ConfigError
from lab.measure.ledger import Step, kv_bytes, logits_bytes, step_peak, weight_bytes
from lab.measure.units import format_bytes
from lab.measure.what_if import what_if_backend
from lab.model.config import ModelConfig

CUDA = torch.device("cuda", 0)


@dataclass(frozen=True)
class KVBudget:
    """Where the memory goes, in bytes."""

    gpu_memory: int
    gpu_memory_utilization: float
    max_num_batched_tokens: int
    weights: int
    transient: int  # peak of the profiled step
    block_bytes: int
    block_size: int

    @property
    def requested(self) -> int:
        return int(self.gpu_memory * self.gpu_memory_utilization)

    @property
    def available(self) -> int:
        """For KV; below 0 if not even the model fits."""
        return self.requested - self.weights - self.transient

    @property
    def num_blocks(self) -> int:
        return max(0, self.available // self.block_bytes)

    @property
    def num_tokens(self) -> int:
        """Tokens the pool holds: the longest request there can be."""
        return self.num_blocks * self.block_size

    def concurrency(self, max_model_len: int) -> float:
        """How many requests of that length fit at once: vLLM's "Maximum concurrency"."""
        return self.num_blocks / -(-max_model_len // self.block_size)

    def require_room_for(self, max_model_len: int) -> None:
        """Raise ConfigError, with every number in it, unless one request of that length fits."""
        if max_model_len <= self.num_tokens:
            return
        blocks = -(-max_model_len // self.block_size)
        way_out = f"lower max_model_len to {self.num_tokens}, or " if self.num_tokens else ""
        raise ConfigError(
            f"a request of max_model_len {max_model_len} needs {blocks} blocks of {self.block_size} tokens "
            f"({format_bytes(blocks * self.block_bytes)}) and {self.num_blocks} fit: {format_bytes(self.gpu_memory)} "
            f"x {self.gpu_memory_utilization} = {format_bytes(self.requested)}, less {format_bytes(self.weights)} of "
            f"weights and {format_bytes(self.transient)} for a step of {self.max_num_batched_tokens} tokens, leaves "
            f"{format_bytes(max(0, self.available))}; {way_out}raise gpu_memory_utilization, lower "
            "max_num_batched_tokens or take a GPU with more memory"
        )


def kv_budget(
    config: ModelConfig,
    gpu_memory: int,
    *,
    gpu_memory_utilization: float = 0.9,
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS,
    max_num_seqs: int = DEFAULT_MAX_NUM_SEQS,
    max_model_len: int | None = None,
    dtype: torch.dtype = torch.bfloat16,
    attention: str = "sdpa",
    device: torch.device = CUDA,
    block_size: int = 16,
) -> KVBudget:
    """The budget of a model on a device of `gpu_memory` bytes; `max_model_len` is the model's positions if not given.

    The profiled step has `max_num_batched_tokens` tokens that end at `max_model_len`, and logits for `max_num_seqs`
    requests. Raises ConfigError for values out of range; whether a request fits is `KVBudget.require_room_for`.
    """
    length = config.max_position_embeddings if max_model_len is None else max_model_len
    limits = {"gpu_memory": gpu_memory, "max_num_batched_tokens": max_num_batched_tokens, "max_num_seqs": max_num_seqs}
    for name, value in (limits | {"max_model_len": length, "block_size": block_size}).items():
        require_at_least(name, value, 1)
    if not 0 < gpu_memory_utilization <= 1:
        raise ConfigError(f"gpu_memory_utilization is {gpu_memory_utilization}; it must be above 0 and at most 1")
    n, backend = max_num_batched_tokens, what_if_backend(attention, device, dtype)
    step = Step(config, n, max(n, length), dtype, backend, device, block_size)
    rows = min(n, max_num_seqs)
    logits = (n + rows) * config.hidden_size * dtype.itemsize + logits_bytes(config, rows, dtype)
    return KVBudget(
        gpu_memory,
        gpu_memory_utilization,
        n,
        weight_bytes(config, dtype),
        max(step_peak(step).nbytes, logits),
        kv_bytes(config, block_size, dtype),
        block_size,
    )
