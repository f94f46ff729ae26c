"""Attention segment by segment, short decodes together: PyTorch's `scaled_dot_product_attention`, and written out.

Each segment's queries are the last of its sequence, so the causal triangle is aligned to the lower right corner.
`is_causal=True` of PyTorch is aligned to the upper left one: right only where there are as many queries as keys.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from lab.model.batch import Batch
from lab.model.device import BFLOAT16_CAPABILITY, capability
from lab.model.kv_store import KVStore

HALF = (torch.float16, torch.bfloat16)

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
        # PyTorch's first choice on Hopper, which takes tens of milliseconds to plan for every new length of the KV.
        torch.backends.cuda.enable_cudnn_sdp(False)

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        """Short decodes some at a time: a call for each would take longer than their attention."""
        if not batch.decode_groups:
            return super().__call__(q, store, layer, batch)
        out = torch.empty_like(q)
        for rows, slots, seen in batch.decode_groups:
            pools = (pool[layer].flatten(0, 1) for pool in (store.keys, store.values))
            k, v = (x.index_select(0, slots.flatten()).unflatten(0, slots.shape).transpose(1, 2) for x in pools)
            grouped = q[rows].view(len(slots), k.shape[1], -1, q.shape[2])  # as in `_decode`
            out[rows] = F.scaled_dot_product_attention(grouped, k, v, seen).flatten(1, 2)
            del k, v  # before the next are copied
        return out

    def _attend(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        if len(q) == 1:
            return self._decode(q, store, layer, batch, i)
        k, v = store.select(layer, batch.kv_blocks[i], batch.context_lens[i])
        (n, heads, _), (length, kv_heads, _) = q.shape, k.shape
        if self.expands_kv:
            k, v = (x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
        q, k, v, gqa = _heads_first(q), _heads_first(k), _heads_first(v), k.shape[1] < heads
        if n == length:
            return _rows_first(F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa))
        if self.on_gpu:  # a kernel's own triangle: nothing is materialised
            with torch._C._DisableTorchDispatch():  # a mode that watches would see it before it is a CausalBias
                triangle = causal_lower_right(n, length)
            return _rows_first(F.scaled_dot_product_attention(q, k, v, triangle, enable_gqa=gqa))
        return _rows_first(_past_and_square(q, k, v))

    def _decode(self, q: Tensor, store: KVStore, layer: int, batch: Batch, i: int) -> Tensor:
        """The heads that share a KV head become the queries of one small attention: each key is read once.

        On the CPU a long run of blocks stays in place: to copy it takes longer than attention does.
        """
        grouped = q.view(1, store.keys[layer].shape[2], -1, q.shape[2])
        parts = ((batch.kv_blocks[i], batch.context_lens[i]),) if self.on_gpu else batch.kv_parts[i]
        pairs = [[_heads_first(x) for x in store.select(layer, *part)] for part in parts]
        k, v = pairs[0]
        if len(pairs) == 1:
            return F.scaled_dot_product_attention(grouped, k, v).reshape(q.shape)
        return _join(*_FLASH_ON_CPU(grouped, k, v), *_FLASH_ON_CPU(grouped, *pairs[1])).reshape(q.shape)


def _past_and_square(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of several queries on the CPU: to what came before them, which all of them see, and to one another.

    The square's triangle is the kernel's own, so no mask is made, which would grow with the context, and none is added.
    """
    groups, n = (k.shape[1], q.shape[1] // k.shape[1]), q.shape[2]
    before = _FLASH_ON_CPU(q.unflatten(1, groups).flatten(2, 3), k[:, :, :-n], v[:, :, :-n])  # grouped as in `_decode`
    itself = _FLASH_ON_CPU(q, k[:, :, -n:], v[:, :, -n:], is_causal=True)
    parts = *(x.unflatten(2, (-1, n)) for x in before), *(x.unflatten(1, groups) for x in itself)
    for of_kv_head in zip(*(x.unbind(1) for x in parts)):  # one by one, for the sake of the copies in float32
        _join(*of_kv_head)
    return itself[0]


def _join(out: Tensor, log_sum: Tensor, rest_out: Tensor, rest_log_sum: Tensor) -> Tensor:
    """Attention to all keys, into `rest_out`, from that to a part of them and that to the rest, each with the
    logarithms of its softmax sums (as in Flash-Decoding, pytorch.org, 2023)."""
    share = log_sum.sub_(rest_log_sum).sigmoid_()[..., None]  # of the part in the softmax's sum
    return rest_out.copy_(rest_out.to(share.dtype).lerp_(out.to(share.dtype), share))


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
            scores.add_(causal_lower_right_mask(n, length, q.dtype, q.device))
        wide = torch.promote_types(q.dtype, torch.float32)
        weights = scores.to(wide).softmax(-1).to(q.dtype).flatten(1, 2)
        return torch.bmm(weights, v.transpose(0, 1)).view(heads, n, head_dim).transpose(0, 1)


def causal_lower_right_mask(num_queries: int, num_keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """`[num_queries, num_keys]`, 0 where a query may see a key, else -inf: the last query sees all keys, the one before
    it all but the last, and so on.

    Aligned to the lower right corner since the queries are the last `num_queries` of the keys' positions.
    """
    return torch.full((num_queries, num_keys), -math.inf, dtype=dtype, device=device).triu_(num_keys - num_queries + 1)


def _heads_first(x: Tensor) -> Tensor:
    """`[n, heads, head_dim]` as the `[1, heads, n, head_dim]` of PyTorch, without a copy."""
    return x.transpose(0, 1)[None]


def _rows_first(x: Tensor) -> Tensor:
    """The way back."""
    return x[0].transpose(0, 1)
