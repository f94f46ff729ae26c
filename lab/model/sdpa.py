"""Attention segment by segment, short decodes together: PyTorch's `scaled_dot_product_attention`, and written out.

Each segment's queries are the last of its sequence, so the causal triangle is aligned to the lower right corner.
`is_causal=True` of PyTorch is aligned to the upper left one: right only where there are as many queries as keys.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from lab.model.batch import Batch
from lab.model.device import BFLOAT16_CAPABILITY, capability
from lab.model.kv_store import KVStore

HALF = (torch.float16, torch.bfloat16)

# Queries of one masked call on the CPU. The triangle is at the right end of a wide mask: cutting a chunk's rows into
# tiles that end at their own diagonal saves what lies beyond it, and one mask of a tile's height serves all of them.
QUERY_TILE = 256

_FLASH_ON_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # what SDPA calls; gives the sums too


class _PerSegment:
    """Attends segment by segment."""

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        if len(batch.rows) == 1:
            return self._attend(q, store, layer, batch, 0)
        out = torch.empty_like(q)
        for i, rows in enumerate(batch.rows):
            out[rows] = self._attend(q[rows], store, layer, batch, i)
        return out

    def _attend(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        raise NotImplementedError


class Sdpa(_PerSegment):
    """`scaled_dot_product_attention` for each segment: runs everywhere."""

    name = "sdpa"

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        has = capability(device)
        self.on_gpu = has is not None
        # CUDA's memory-efficient kernel, all that a T4 and float32 have, knows no grouped queries. Flash and the CPU
        # kernel do: there a repeated KV head would only cost time.
        self.expands_kv = has is not None and (has < BFLOAT16_CAPABILITY or dtype not in HALF)

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        """Short decodes in one call: a call for each would take longer than their attention."""
        mask = batch.decode_mask
        if mask is None:
            return super().__call__(q, store, layer, batch)
        pair = store.select(layer, batch.block_table.flatten(), len(q) * mask.shape[-1])
        k, v = (x.unflatten(0, (len(q), -1)).transpose(1, 2) for x in pair)
        grouped = q.view(len(q), k.shape[1], -1, q.shape[2])  # as in `_decode`
        return F.scaled_dot_product_attention(grouped, k, v, mask.to(q.dtype)).reshape(q.shape)

    def _attend(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        if len(q) == 1:
            return self._decode(q, store, layer, batch, i)
        k, v = store.select(layer, batch.kv_blocks[i], batch.context_lens[i])
        (n, heads, _), (length, kv_heads, _) = q.shape, k.shape
        if self.expands_kv:
            k, v = (x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
        attend = partial(F.scaled_dot_product_attention, enable_gqa=k.shape[1] < heads)
        q, k, v = _heads_first(q), _heads_first(k), _heads_first(v)
        if n == length:
            return _rows_first(attend(q, k, v, is_causal=True))
        if self.on_gpu:  # a kernel's own triangle: nothing is materialised
            return _rows_first(attend(q, k, v, causal_lower_right(n, length)))
        mask = batch.causal_mask(i, min(n, QUERY_TILE), q.dtype)
        tiles = []
        for stop in range(n % QUERY_TILE or QUERY_TILE, n + 1, QUERY_TILE):
            start, seen = max(0, stop - QUERY_TILE), length - n + stop  # the tile's last row sees the first `seen` keys
            tile_mask = mask[start - stop :, length - seen :]  # its lower right corner is the same one
            tiles.append(_rows_first(attend(q[:, :, start:stop], k[:, :, :seen], v[:, :, :seen], tile_mask)))
        return tiles[0] if len(tiles) == 1 else torch.cat(tiles)

    def _decode(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        """The heads that share a KV head become the queries of one small attention: each key is read once.

        On the CPU a long run of blocks stays in place: to copy it takes longer than attention does. Attention to it and
        to the rest are put together by the logarithms of their softmax sums (as in Flash-Decoding, pytorch.org, 2023).
        """
        grouped = q.view(1, store.keys[layer].shape[2], -1, q.shape[2])
        parts = ((batch.kv_blocks[i], batch.context_lens[i]),) if self.on_gpu else batch.kv_parts[i]
        pairs = [[_heads_first(x) for x in store.select(layer, *part)] for part in parts]
        if len(pairs) == 1:
            k, v = pairs[0]
            return F.scaled_dot_product_attention(grouped, k, v).reshape(q.shape)
        (out, log_sum), (rest, rest_log_sum) = (_FLASH_ON_CPU(grouped, k, v) for k, v in pairs)
        share = torch.sigmoid(log_sum - rest_log_sum)[..., None]  # of the first part in the softmax's sum
        return torch.lerp(rest.to(share.dtype), out.to(share.dtype), share).to(q.dtype).reshape(q.shape)


class Math(_PerSegment):
    """Attention as it is written down, `softmax(q k^T / sqrt(head_dim)) v`, its `[heads, n, length]` in memory."""

    name = "math"

    def _attend(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        k, v = store.select(layer, batch.kv_blocks[i], batch.context_lens[i])
        (n, heads, head_dim), (length, kv_heads, _) = q.shape, k.shape
        group = heads // kv_heads  # the queries of a group share a KV head: one product for all of them
        q = q.view(n, kv_heads, group, head_dim).permute(1, 2, 0, 3).reshape(kv_heads, group * n, head_dim)
        scores = torch.bmm(q, k.permute(1, 2, 0)).mul_(1 / math.sqrt(head_dim)).view(kv_heads, group, n, length)
        if n > 1:
            scores.add_(batch.causal_mask(i, n, q.dtype))
        wide = torch.promote_types(q.dtype, torch.float32)
        weights = scores.softmax(-1, dtype=wide).to(q.dtype).flatten(1, 2)
        return torch.bmm(weights, v.transpose(0, 1)).view(heads, n, head_dim).transpose(0, 1)


def _heads_first(x: Tensor) -> Tensor:
    """`[n, heads, head_dim]` as the `[1, heads, n, head_dim]` of PyTorch, without a copy."""
    return x.transpose(0, 1)[None]


def _rows_first(x: Tensor) -> Tensor:
    """The way back."""
    return x[0].transpose(0, 1)
