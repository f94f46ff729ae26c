"""Is a token's result the same, bit for bit, whatever is computed beside it?

Kernels choose their tiles, and with them the order of their sums, by how many rows they are given, so by default it
need not be: a token in a chunk of 17 may differ in its last bit from the same token in a chunk of 512. `FixedTiles` and
`TiledSdpa` are a setting under which nothing is left to choose: every product, every norm and every attention call has
TILE rows, filled up with zeros, and a token's attention is computed in the one tile that its position belongs to. It
costs many times the work; engines get there with kernels of their own. PyTorch's eager mode has no such setting
(`torch.use_deterministic_algorithms` speaks of repeats, not of neighbours).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lab.checks.equivalence import random_prompt
from lab.checks.prefill import Prefill
from lab.measure.steps import BLOCK_SIZE, backend_of
from lab.model.attention import AttentionBackend
from lab.model.batch import Batch, Segment
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.sdpa import causal_lower_right_mask

TILE = 64
Setting = Literal["default", "fixed tiles"]


class FixedTiles(TorchFunctionMode):  # type: ignore[no-untyped-call]
    """While it is active, products with weights and means run on TILE rows at a time, whatever the batch."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is torch.mv:  # one row, or few: the weight stands on the left (`lab.model.decoder.linear`)
            return _in_tiles(F.linear, args[1][None], args[0])[0]
        if func is torch.mm:
            return _in_tiles(F.linear, args[1].t(), args[0]).t()
        run = partial(_in_tiles, func) if func in (F.linear, Tensor.mean) else func
        return run(*args, **(kwargs or {}))


def _in_tiles(func: Callable[..., Tensor], x: Tensor, *rest: Any, **kwargs: Any) -> Tensor:
    return torch.cat([func(_filled_up(part), *rest, **kwargs)[: len(part)] for part in x.split(TILE)])


class TiledSdpa:
    """Attention in tiles of TILE queries that begin at multiples of TILE, over keys up to the end of the tile."""

    name = "sdpa in fixed tiles"

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        out = torch.empty_like(q)
        for i, rows in enumerate(batch.rows):
            k, v = store.select(layer, batch.kv_blocks[i], batch.context_lens[i])
            group = q.shape[1] // k.shape[1]
            k, v = (_filled_up(x).repeat_interleave(group, dim=1) for x in (k, v))
            self._attend(out[rows], q[rows], k, v, batch.context_lens[i])
        return out

    def _attend(self, out: Tensor, q: Tensor, k: Tensor, v: Tensor, length: int) -> None:
        position = length - len(q)  # of the first row that is not done yet
        while position < length:
            begin = position // TILE * TILE
            end = begin + TILE
            stop = min(end, length)
            tile = q.new_zeros(TILE, *q.shape[1:])
            tile[position - begin : stop - begin] = q[position - length : stop - length or None]
            mask = causal_lower_right_mask(TILE, end, q.dtype, q.device)
            tile, keys, values = (x.transpose(0, 1)[None] for x in (tile, k[:end], v[:end]))
            result = F.scaled_dot_product_attention(tile, keys, values, mask)[0].transpose(0, 1)
            out[position - length : stop - length or None] = result[position - begin : stop - begin]
            position = stop


def _filled_up(x: Tensor) -> Tensor:
    """With rows of zeros after it, up to a multiple of TILE."""
    return F.pad(x, (0, 0) * (x.ndim - 1) + (0, -len(x) % TILE))


@dataclass(frozen=True)
class BitsRow:
    """Hidden states of the same tokens, computed in two ways under one setting."""

    setting: Setting
    case: str
    rows: int
    rows_that_differ: int  # in a bit or more
    delta: float  # the largest difference


def bit_equality(decoder: Decoder, num_tokens: int, chunk_sizes: Sequence[int], seed: int = 0) -> list[BitsRow]:
    """A prompt again, in chunks, and with other requests before and after it in the batch; for both settings."""
    usual = backend_of(decoder)
    settings: list[tuple[Setting, AbstractContextManager[Any], AttentionBackend]] = [
        ("default", nullcontext(), usual),
        ("fixed tiles", FixedTiles(), TiledSdpa()),  # type: ignore[no-untyped-call]
    ]
    prompt = random_prompt(decoder, num_tokens, seed)
    rows = []
    for setting, mode, attention in settings:
        with mode:
            for case, one, other in _cases(decoder, prompt, chunk_sizes, attention):
                differs = int((one != other).any(-1).sum())
                delta = float((one.double() - other.double()).abs().max())
                rows.append(BitsRow(setting, case, len(one), differs, delta))
    return rows


def _cases(
    decoder: Decoder, prompt: list[int], chunk_sizes: Sequence[int], attention: AttentionBackend
) -> Iterator[tuple[str, Tensor, Tensor]]:
    whole, again = (_in_chunks(decoder, prompt, len(prompt), attention) for _ in range(2))
    yield "repeat", again, whole
    for size in chunk_sizes:
        yield f"chunks of {size}", _in_chunks(decoder, prompt, size, attention), whole
    short, others = prompt[:5], [prompt[:1]] * 7 + [prompt[::-1][: TILE + 5]]
    alone = _in_one_step(decoder, [short], attention)
    yield "before others", _in_one_step(decoder, [short, *others], attention)[: len(short)], alone
    yield "after others", _in_one_step(decoder, [*others, short], attention)[-len(short) :], alone


def _in_chunks(decoder: Decoder, prompt: list[int], chunk_size: int, attention: AttentionBackend) -> Tensor:
    return Prefill(decoder, prompt, chunk_size, attention=attention, keep_hidden=True).run().hidden


@torch.inference_mode()
def _in_one_step(decoder: Decoder, prompts: list[list[int]], attention: AttentionBackend) -> Tensor:
    """Hidden states of all prompts, whole, end to end."""
    segments, blocks = [], 0
    for prompt in prompts:
        taken = -(-len(prompt) // BLOCK_SIZE)
        segments.append(Segment(prompt, 0, range(blocks, blocks + taken), False))
        blocks += taken
    store = KVStore(decoder.config, blocks, BLOCK_SIZE, dtype=decoder.dtype, device=decoder.device)
    batch = Batch.build(segments, BLOCK_SIZE, decoder.device, blocks)
    return decoder(batch.token_ids, batch.positions, store, batch, attention)
