"""What attention is to the decoder, and which of the backends to use."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from lab.model.batch import Batch
from lab.model.config import ModelConfig
from lab.model.errors import ModelError
from lab.model.kv_store import KVStore
from lab.model.sdpa import Math, Sdpa
from lab.model.varlen import Varlen, varlen_refusal

__all__ = ["AttentionBackend", "Math", "Sdpa", "Selected", "Varlen", "select_backend"]


class AttentionBackend(Protocol):
    name: str

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        """`[T, heads, head_dim]`: each row of q attends to the KV of its own sequence up to itself."""
        ...


@dataclass(frozen=True)
class Selected:
    """The backend to use and, for the reader, why it is this one."""

    backend: AttentionBackend
    reason: str


def select_backend(
    requested: str | None, config: ModelConfig, device: torch.device, dtype: torch.dtype, block_size: int
) -> Selected:
    """The backend called `requested` ("varlen", "sdpa", "math"); None is varlen where it works and sdpa elsewhere.

    Raises ModelError for an unknown name, and for "varlen" where it does not work.
    """
    if requested == "math":
        return Selected(Math(), "asked for")
    if requested == "sdpa":
        return Selected(Sdpa(device, dtype), "asked for")
    if requested not in (None, "varlen"):
        raise ModelError(f"attention {requested!r} is unknown; there is varlen, sdpa, math")
    refusal = varlen_refusal(config, device, dtype, block_size)
    if refusal is None:
        return Selected(Varlen(), "varlen_attn works here and agrees with sdpa")
    if requested == "varlen":
        raise ModelError(f"attention 'varlen' does not work here: {refusal}; ask for 'sdpa'")
    return Selected(Sdpa(device, dtype), f"not varlen: {refusal}")
