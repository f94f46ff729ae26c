"""What a scheduler may do in one step, and how much KV cache there is. Names are vLLM's."""

from dataclasses import dataclass
from typing import Any, Literal

from lab.core.errors import ConfigError

DEFAULT_MAX_NUM_BATCHED_TOKENS = 2048
DEFAULT_MAX_NUM_SEQS = 128
MAX_SIZE = 2**24  # blocks of a pool, tokens of a block: more than any machine has, and few enough to list

Policy = Literal["fcfs", "priority"]


def require_at_least(name: str, value: int, least: int) -> None:
    """Raise `ConfigError` unless `value` is an integer, which a boolean is not, and `value >= least`."""
    if type(value) is not int:
        raise ConfigError(f"{name} is {value!r}; it must be an integer of at least {least}")
    if value < least:
        raise ConfigError(f"{name} is {value}; it must be at least {least}")


@dataclass(frozen=True)
class CacheConfig:
    """The KV cache as the scheduler sees it: `num_blocks` blocks of `block_size` tokens each.

    `watermark_blocks` must stay free when a request is admitted beside running ones (vLLM 0.33: `watermark`, off by
    default). `num_cpu_blocks` more lie in host memory, for a scheduler that swaps. Raises `ConfigError` for sizes that
    make no cache.
    """

    num_blocks: int
    block_size: int = 16
    watermark_blocks: int = 0
    num_cpu_blocks: int = 0

    def __post_init__(self) -> None:
        for name, least in (("num_blocks", 1), ("block_size", 1), ("watermark_blocks", 0), ("num_cpu_blocks", 0)):
            require_at_least(name, getattr(self, name), least)
        if (most := max(self.num_blocks, self.num_cpu_blocks, self.block_size)) > MAX_SIZE:
            raise ConfigError(f"num_blocks, num_cpu_blocks or block_size is {most}; it must be at most {MAX_SIZE}")

    @property
    def num_tokens(self) -> int:
        """Tokens that the whole pool can hold."""
        return self.num_blocks * self.block_size


@dataclass(frozen=True)
class SchedulerConfig:
    """The limits of one step.

    - `max_num_batched_tokens`: the token budget, new tokens computed per step over all requests;
    - `max_num_seqs`: requests that may be running, those still in their prompt included;
    - `long_prefill_token_threshold`: the chunk cap of one request while others are there; 0 means none;
    - `enable_chunked_prefill`: without it a prompt is computed in one step or not at all;
    - `reserve_full_prompt`: admit only what fits with all its known tokens (vLLM: `scheduler_reserve_full_isl`);
    - `policy`: who is next, and who is preempted: `fcfs`, or `priority` (the lower number first);
    - `max_model_len`: most tokens of one request, prompt and output together; None means no limit.

    Raises `ConfigError` for values that contradict each other. The rules are those of vLLM 0.33.0.
    """

    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS
    max_num_seqs: int = DEFAULT_MAX_NUM_SEQS
    long_prefill_token_threshold: int = 0
    enable_chunked_prefill: bool = True
    reserve_full_prompt: bool = True
    policy: Policy = "fcfs"
    max_model_len: int | None = None

    def __post_init__(self) -> None:
        limits = (("max_num_batched_tokens", 1), ("max_num_seqs", 1), ("long_prefill_token_threshold", 0))
        for name, least in limits:
            require_at_least(name, getattr(self, name), least)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) is below max_num_seqs ({self.max_num_seqs}): "
                "not every running request could advance in a step; raise the budget or lower max_num_seqs"
            )
        for name in ("enable_chunked_prefill", "reserve_full_prompt"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        if self.policy not in ("fcfs", "priority"):
            raise ConfigError(f"policy is {self.policy!r}; it must be 'fcfs' or 'priority'")
        if self.max_model_len is not None:
            self._check_model_len(self.max_model_len)

    def _check_model_len(self, max_model_len: int) -> None:
        require_at_least("max_model_len", max_model_len, 1)
        if not self.enable_chunked_prefill and self.max_num_batched_tokens < max_model_len:
            raise ConfigError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) is below max_model_len ({max_model_len}) with "
                "chunked prefill off: the longest prompt would never fit a step; raise the budget or turn chunking on"
            )

    @classmethod
    def with_defaults(
        cls, *, max_num_batched_tokens: int | None = None, max_num_seqs: int | None = None, **others: Any
    ) -> "SchedulerConfig":
        """If one of the two limits is missing it follows the other, so that only two given limits can clash."""
        given = {"max_num_batched_tokens": max_num_batched_tokens, "max_num_seqs": max_num_seqs}
        limits = {name: limit for name, limit in given.items() if limit is not None}
        for name, limit in limits.items():
            require_at_least(name, limit, 1)
        budget = max(DEFAULT_MAX_NUM_BATCHED_TOKENS, limits.get("max_num_seqs", 1))
        seqs = min(DEFAULT_MAX_NUM_SEQS, limits.get("max_num_batched_tokens", budget))
        return cls(**{"max_num_batched_tokens": budget, "max_num_seqs": seqs} | limits | others)
