"""The backends against attention written out row by row, and which form of SDPA is called where."""

import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lab.core.errors import LabError
from lab.model import batch as batch_module
from lab.model import sdpa as sdpa_module
from lab.model.attention import QUERY_TILE, AttentionBackend, Math, Sdpa, select_backend
from lab.model.batch import LONG_RUN, Batch, Segment, causal_lower_right_mask
from lab.model.kv_store import KVStore
from lab.model.tiny import TINY

CPU = torch.device("cpu")
BLOCK = 16
CONFIG = replace(TINY["tiny"], num_hidden_layers=1)
# (start, tokens) of the segments of a batch. The long ones have a tile that is full, one that is not, and both.
SHAPES = {
    "decode": [(99, 1)],
    "first token": [(0, 1)],
    "whole": [(0, 70)],
    "chunk": [(33, 40)],
    "two tokens": [(98, 2)],
    "one tile": [(10, QUERY_TILE)],
    "a row more than a tile": [(1, QUERY_TILE + 1)],
    "tiles": [(100, 2 * QUERY_TILE + 88)],
    "two": [(40, 1), (0, 30)],
    "decodes": [(40, 1), (99, 1), (0, 1), (15, 1), (16, 1)],
    "decodes, a long one among them": [(40, 1), (LONG_RUN, 1)],
    "mixed": [(40, 1), (0, 30), (17, 25), (0, 1), (16, 16), (5, QUERY_TILE + 3)],
}


def setting(shape: str, dtype: torch.dtype = torch.float32, scattered: bool = True) -> tuple[Tensor, KVStore, Batch]:
    """Random queries over a store full of random numbers, those beyond the sequences included."""
    generator = torch.Generator().manual_seed(0)
    segments, used = [], 1  # block 0 is nobody's
    for start, n in SHAPES[shape]:
        blocks = range(used, used + -(-(start + n) // BLOCK))
        used += len(blocks)
        segments.append(Segment([0] * n, start, blocks[::-1] if scattered else blocks, True))
    store = KVStore(CONFIG, used, BLOCK, dtype=dtype, device=CPU)
    for pool in (*store.keys, *store.values):
        pool.copy_(torch.randn(pool.shape, generator=generator))
    batch = Batch.build(segments, BLOCK, CPU, used)
    q = torch.randn((len(batch.token_ids), CONFIG.num_attention_heads, CONFIG.head_dim), generator=generator)
    return q.to(dtype), store, batch


def written_out(q: Tensor, store: KVStore, batch: Batch) -> Tensor:
    """Attention of one row and one head at a time, in float64, through the block table slot by slot."""
    out = torch.empty_like(q, dtype=torch.float64)
    rows = iter(range(len(q)))
    group = CONFIG.num_attention_heads // CONFIG.num_key_value_heads
    for n, length, table in zip(batch.query_lens, batch.context_lens, batch.block_tables):
        slots = [table[i // BLOCK] * BLOCK + i % BLOCK for i in range(length)]
        keys, values = (pool[0].flatten(0, 1)[slots].double() for pool in (store.keys, store.values))
        for position in range(length - n, length):
            row = next(rows)
            for head in range(CONFIG.num_attention_heads):
                k, v = (x[: position + 1, head // group] for x in (keys, values))
                out[row, head] = torch.softmax(k @ q[row, head].double() / math.sqrt(CONFIG.head_dim), 0) @ v
    return out


@pytest.mark.parametrize("backend", [Sdpa(CPU, torch.float32), Math()], ids=lambda b: b.name)
@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_to_attention_written_out(backend: AttentionBackend, shape: str, scattered: bool) -> None:
    q, store, batch = setting(shape, scattered=scattered)
    out = backend(q, store, 0, batch)
    assert out.shape == q.shape
    assert (out - written_out(q, store, batch)).abs().max() < 2e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_long_run_stays_in_place(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    """A decode whose prompt's blocks are consecutive and whose later ones are not: the later ones alone are copied."""
    length = LONG_RUN + 2 * BLOCK + 3
    run = LONG_RUN // BLOCK
    segment = Segment([0], length - 1, [*range(run), run + 5, run + 1, run + 3], True)
    store = KVStore(CONFIG, run + 6, BLOCK, dtype=dtype, device=CPU)
    generator = torch.Generator().manual_seed(0)
    for pool in (*store.keys, *store.values):
        pool.copy_(torch.randn(pool.shape, generator=generator))
    batch = Batch.build([segment], BLOCK, CPU, run + 6)
    q = torch.randn((1, CONFIG.num_attention_heads, CONFIG.head_dim), generator=generator).to(dtype)

    (here, tokens), (rest, few) = batch.kv_parts[0]
    assert here == slice(0, run) and tokens == LONG_RUN
    assert isinstance(rest, Tensor) and rest.tolist() == [run + 5, run + 1, run + 3] and few == 2 * BLOCK + 3
    out = Sdpa(CPU, dtype)(q, store, 0, batch)
    assert (out - written_out(q, store, batch)).abs().max() < max(2e-6, 8 * torch.finfo(dtype).eps)
    monkeypatch.setattr(batch_module, "LONG_RUN", LONG_RUN + 1)  # too short now: all of it is copied
    whole = replace(batch)
    assert len(whole.kv_parts[0]) == 1 and isinstance(whole.kv_parts[0][0][0], Tensor)
    assert (Sdpa(CPU, dtype)(q, store, 0, whole) - out).abs().max() < max(2e-6, 8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", ["sdpa", "math"])
def test_other_dtypes(name: str, dtype: torch.dtype) -> None:
    q, store, batch = setting("mixed", dtype)
    out = select_backend(name, CONFIG, CPU, dtype, BLOCK).backend(q, store, 0, batch)
    assert out.dtype == dtype
    assert (out - written_out(q, store, batch)).abs().max() < 8 * torch.finfo(dtype).eps


@pytest.mark.parametrize("name", ["sdpa", "math"])
def test_the_wrong_corner_shows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Aligned to the upper left corner, the mask of a chunk moves the result by what a test can't miss."""
    q, store, batch = setting("chunk")
    backend = select_backend(name, CONFIG, CPU, torch.float32, BLOCK).backend
    right = backend(q, store, 0, batch)

    def upper_left(num_queries: int, num_keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.full((num_queries, num_keys), -math.inf, dtype=dtype, device=device).triu_(1)

    monkeypatch.setattr(batch_module, "causal_lower_right_mask", upper_left)
    assert (backend(q, store, 0, replace(batch)) - right).abs().max() > 0.5


def test_mask() -> None:
    inf = -math.inf
    mask = causal_lower_right_mask(2, 4, torch.float32, CPU)
    assert mask.tolist() == [[0, 0, 0, inf], [0, 0, 0, 0]]
    assert causal_lower_right_mask(2, 2, torch.float16, CPU).tolist() == [[0, inf], [0, 0]]


def test_a_mask_is_made_once_a_step() -> None:
    q, store, batch = setting("tiles")
    backend = Sdpa(CPU, torch.float32)
    backend(q, store, 0, batch)
    mask = batch.causal_mask(0, QUERY_TILE, torch.float32)
    assert mask.shape == (QUERY_TILE, batch.context_lens[0])  # of a tile's height, not of the chunk's
    backend(q, store, 0, batch)
    assert batch.causal_mask(0, QUERY_TILE, torch.float32) is mask


class Call:
    """What SDPA was called with."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **options: bool) -> None:
        self.q, self.k, self.mask, self.options = q, k, mask, options


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    recorded: list[Call] = []

    def record(*args, **options):
        recorded.append(Call(*args, **options))
        return F.scaled_dot_product_attention(*args, **options)

    monkeypatch.setattr(sdpa_module, "F", SimpleNamespace(scaled_dot_product_attention=record))
    return recorded


def test_forms_on_the_cpu(calls: list[Call]) -> None:
    """No mask for one query, `is_causal` only for a square, never a repeated KV head, a view where blocks follow on."""
    backend = Sdpa(CPU, torch.float32)
    for shape in ("decode", "whole", "chunk"):
        q, store, batch = setting(shape, scattered=False)
        backend(q, store, 0, batch)
        call = calls[-1]
        assert call.k.shape[1] == CONFIG.num_key_value_heads
        assert call.k.untyped_storage().data_ptr() == store.keys[0].untyped_storage().data_ptr()
        assert bool(call.options.get("is_causal")) == (shape == "whole")
        assert (call.mask is not None) == (shape == "chunk")
    assert len(calls) == 3


def test_short_decodes_are_one_call(calls: list[Call]) -> None:
    for shape, number in (("decodes", 1), ("decodes, a long one among them", 2), ("two", 2)):
        q, store, batch = setting(shape)
        Sdpa(CPU, torch.float32)(q, store, 0, batch)
        assert len(calls) == number, shape
        calls.clear()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_what_pads_a_decode_is_not_seen(dtype: torch.dtype) -> None:
    q, store, batch = setting("decodes", dtype)
    out = Sdpa(CPU, dtype)(q, store, 0, batch)
    assert (out - written_out(q, store, batch)).abs().max() < 8 * torch.finfo(dtype).eps
    batch.__dict__["decode_mask"] = torch.zeros_like(batch.decode_mask)
    assert (Sdpa(CPU, dtype)(q, store, 0, batch) - out).abs().max() > 0.1


@pytest.mark.parametrize(
    ("capability", "dtype", "expands"),
    [((7, 5), torch.float16, True), ((8, 0), torch.float32, True), ((8, 0), torch.bfloat16, False)],
)
@pytest.mark.parametrize("shape", ["mixed", "tiles", "decodes"])
def test_forms_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, calls: list[Call], capability: tuple[int, int], dtype: torch.dtype,
    expands: bool, shape: str,
) -> None:  # fmt: skip
    """What would be called on a GPU, computed here: KV heads repeated only where they must be, and no mask made."""
    monkeypatch.setattr(sdpa_module, "capability", lambda device: capability)
    backend = Sdpa(CPU, dtype)
    assert backend.expands_kv == expands
    q, store, batch = setting(shape, dtype)
    out = backend(q, store, 0, batch)
    assert (out - written_out(q, store, batch)).abs().max() < 8 * torch.finfo(dtype).eps
    heads, kv_heads = CONFIG.num_attention_heads, CONFIG.num_key_value_heads
    for call in calls:
        one_query = call.q.shape[1] == kv_heads  # its groups are the queries: nothing to repeat
        assert call.k.shape[1] == (heads if expands and not one_query else kv_heads)
        assert bool(call.options.get("enable_gqa")) == (call.q.shape[1] != call.k.shape[1])
    assert not batch._masks


def test_an_unknown_backend() -> None:
    with pytest.raises(LabError, match="'flash' is unknown; there is varlen, sdpa, math"):
        select_backend("flash", CONFIG, CPU, torch.float32, BLOCK)


def test_what_is_selected_on_a_cpu() -> None:
    for requested in ("sdpa", "math"):
        assert select_backend(requested, CONFIG, CPU, torch.float32, BLOCK).backend.name == requested
    selected = select_backend(None, CONFIG, CPU, torch.float32, BLOCK)
    with pytest.raises(FrozenInstanceError):
        selected.backend = Math()  # type: ignore[misc]
    assert selected.backend.name == "sdpa"
    assert selected.reason == "not varlen: it needs a CUDA device"
    with pytest.raises(LabError, match="'varlen' does not work here: it needs a CUDA device; ask for 'sdpa'"):
        select_backend("varlen", CONFIG, CPU, torch.float32, BLOCK)
