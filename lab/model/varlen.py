"""Attention for the whole batch in one call, over the paged KV cache as it lies: `torch.nn.attention.varlen`.

Documented by PyTorch 2.13; before it there is none, or one without a block table. Its kernels refuse more than is
documented (flash-attention 2 takes pages of 256 tokens and their multiples only), so it is tried before it is used.
"""

from dataclasses import replace
from inspect import signature

import torch
from torch import Tensor

from lab.model.batch import Batch, Segment
from lab.model.config import ModelConfig
from lab.model.device import BFLOAT16_CAPABILITY, capability, dtype_name
from lab.model.kv_store import KVStore
from lab.model.sdpa import HALF, Sdpa

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:
    varlen_attn = None  # type: ignore[assignment]

PROBE_TOLERANCE = 0.05  # of attention over random numbers of size 1, in half precision; a wrong mask is off by 1


class Varlen:
    """`torch.nn.attention.varlen.varlen_attn` (PyTorch 2.13): all segments in one call, keys and values where they lie.

    `num_splits=1` makes a segment's result the same bit for bit whatever else is in the batch.
    """

    name = "varlen"

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        out = varlen_attn(
            q,
            store.keys[layer],
            store.values[layer],
            batch.cu_query_lens,
            batch.cu_kv_lens,
            max(batch.query_lens),
            max(batch.context_lens),
            window_size=(-1, 0),  # causal; aligned to the lower right corner
            enable_gqa=q.shape[1] != store.keys[layer].shape[2],
            seqused_k=batch.kv_lens,
            block_table=batch.block_table,
            num_splits=1,
        )
        assert isinstance(out, Tensor)  # a tuple only if more was asked for
        return out


def varlen_refusal(config: ModelConfig, device: torch.device, dtype: torch.dtype, block_size: int) -> str | None:
    """Why `Varlen` can't be used, or None if it can: what is known beforehand, then a try on a small batch."""
    has = capability(device)
    if has is None:
        return "it needs a CUDA device"
    if has < BFLOAT16_CAPABILITY:
        return f"it needs compute capability 8.0, the device has {has[0]}.{has[1]}"
    if dtype not in HALF:
        return f"it computes in float16 and bfloat16, not {dtype_name(dtype)}"
    known = {} if varlen_attn is None else signature(varlen_attn).parameters
    if not {"block_table", "seqused_k", "num_splits"} <= set(known):
        return f"PyTorch {torch.__version__} has no varlen_attn that takes a block_table"
    try:
        difference = _probe(config, device, dtype, block_size)
    except (RuntimeError, ValueError) as error:  # which page sizes a kernel takes is written nowhere but in its checks
        return f"it refused blocks of {block_size} tokens ({str(error).splitlines()[0]})"
    if not difference <= PROBE_TOLERANCE:
        return f"it is off by {difference:.2g} from sdpa on random numbers, {PROBE_TOLERANCE} are allowed"
    return None


@torch.inference_mode()
def _probe(config: ModelConfig, device: torch.device, dtype: torch.dtype, block_size: int) -> float:
    """Largest difference between `Varlen` and `Sdpa` on one decode, one later chunk and one whole prompt."""
    store = KVStore(replace(config, num_hidden_layers=1), 4, block_size, dtype=dtype, device=device)
    segments = [
        Segment([0], block_size, (2, 0), True),
        Segment([0] * (block_size - block_size // 2), block_size // 2, (3,), True),
        Segment([0] * block_size, 0, (1,), True),
    ]
    batch = Batch.build(segments, block_size, device, store.num_blocks)
    generator = torch.Generator().manual_seed(0)
    for pool in (*store.keys, *store.values):
        pool.copy_(torch.randn(pool.shape, generator=generator))
    shape = (len(batch.token_ids), config.num_attention_heads, config.head_dim)
    q = torch.randn(shape, generator=generator).to(device, dtype)
    return float((Varlen()(q, store, 0, batch) - Sdpa(device, dtype)(q, store, 0, batch)).abs().max())
