"""The backends against attention written out row by row, and which form of SDPA is called where."""

import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import CausalBias

from lab.core.errors import LabError
from lab.model import batch as batch_module
from lab.model import sdpa as sdpa_module
from lab.model.attention import AttentionBackend, Math, Sdpa, select_backend
from lab.model.batch import LONG_RUN, MOST_COPIED, Batch, Segment
from lab.model.kv_store import KVStore
from lab.model.sdpa import causal_lower_right_mask
from lab.model.tiny import TINY

CPU = torch.device("cpu")
BLOCK = 16
CONFIG = replace(TINY["tiny"], num_hidden_layers=1)
# (start, tokens) of the segments of a batch. PyTorch's kernel takes 32, 64 or 256 queries at a time.
SHAPES = {
    "decode": [(99, 1)],
    "first token": [(0, 1)],
    "whole": [(0, 70)],
    "chunk": [(33, 40)],
    "two tokens": [(98, 2)],
    "longer than what came before": [(10, 256)],
    "after one token": [(1, 257)],
    "long": [(100, 600)],
    "two": [(40, 1), (0, 30)],
    "decodes": [(40, 1), (99, 1), (0, 1), (15, 1), (16, 1)],
    "decodes, a long one among them": [(40, 1), (LONG_RUN, 1)],
    "many decodes": [(start, 1) for start in (500, 3, 511, 250, 16, 15, 400)],
    "mixed": [(40, 1), (0, 30), (17, 25), (0, 1), (16, 16), (5, 259)],
}


def setting(shape: str, dtype: torch.dtype = torch.float32, scattered: bool = True) -> tuple[Tensor, KVStore, Batch]:
    """Random queries over a store of random numbers, and of NaN where no sequence is: a request that is over may have
    left it there, and a weight of 0 does not take it away."""
    generator = torch.Generator().manual_seed(0)
    segments, used = [], 1  # block 0 is nobody's
    for start, n in SHAPES[shape]:
        blocks = range(used, used + -(-(start + n) // BLOCK))
        used += len(blocks)
        segments.append(Segment([0] * n, start, blocks[::-1] if scattered else blocks, True))
    store = KVStore(CONFIG, used, BLOCK, dtype=dtype, device=CPU)
    batch = Batch.build(segments, BLOCK, CPU, used)
    tables = zip(batch.block_tables, batch.context_lens)
    own = [table[i // BLOCK] * BLOCK + i % BLOCK for table, length in tables for i in range(length)]
    for pool in store.pools:
        numbers = torch.randn((len(own), *pool.shape[2:]), generator=generator)
        pool.fill_(math.nan).flatten(0, 1)[own] = numbers.to(dtype)
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


def test_the_wrong_corner_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aligned to the upper left corner, the mask of a chunk moves the result by what a test can't miss."""
    q, store, batch = setting("chunk")
    backend = Math()
    right = backend(q, store, 0, batch)

    def upper_left(num_queries: int, num_keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.full((num_queries, num_keys), -math.inf, dtype=dtype, device=device).triu_(1)

    monkeypatch.setattr(sdpa_module, "causal_lower_right_mask", upper_left)
    assert (backend(q, store, 0, replace(batch)) - right).abs().max() > 0.5


@pytest.mark.parametrize("fault", ["a chunk sees its future", "the parts weigh the same"])
def test_a_wrong_part_shows(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    q, store, batch = setting("chunk")
    backend = Sdpa(CPU, torch.float32)
    right = backend(q, store, 0, batch)
    flash = sdpa_module._FLASH_ON_CPU

    def faulty(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> tuple[Tensor, Tensor]:
        if fault == "a chunk sees its future":
            return flash(q, k, v)
        out, log_sum = flash(q, k, v, is_causal=is_causal)
        return out, torch.zeros_like(log_sum)

    monkeypatch.setattr(sdpa_module, "_FLASH_ON_CPU", faulty)
    assert (backend(q, store, 0, batch) - right).abs().max() > 0.1


def test_mask() -> None:
    inf = -math.inf
    mask = causal_lower_right_mask(2, 4, torch.float32, CPU)
    assert mask.tolist() == [[0, 0, 0, inf], [0, 0, 0, 0]]
    assert causal_lower_right_mask(2, 2, torch.float16, CPU).tolist() == [[0, inf], [0, 0]]


class Call:
    """What attention was called with."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **options: bool) -> None:
        self.q, self.k, self.mask, self.options = q, k, mask, options


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    recorded: list[Call] = []

    def recording(function):
        def record(*args, **options):
            recorded.append(Call(*args, **options))
            return function(*args, **options)

        return record

    sdpa = recording(F.scaled_dot_product_attention)
    monkeypatch.setattr(sdpa_module, "F", SimpleNamespace(scaled_dot_product_attention=sdpa))
    monkeypatch.setattr(sdpa_module, "_FLASH_ON_CPU", recording(sdpa_module._FLASH_ON_CPU))
    return recorded


def test_forms_on_the_cpu(calls: list[Call]) -> None:
    """`is_causal` only for a square, never a mask or a repeated KV head, a view where blocks follow on."""
    backend = Sdpa(CPU, torch.float32)
    for shape in ("decode", "whole", "chunk"):
        q, store, batch = setting(shape, scattered=False)
        backend(q, store, 0, batch)
        for call in calls:
            assert call.k.shape[1] == CONFIG.num_key_value_heads
            assert call.k.untyped_storage().data_ptr() == store.keys[0].untyped_storage().data_ptr()
            assert call.mask is None
            assert not call.options.get("is_causal") or call.q.shape[2] == call.k.shape[2]
        squares = [bool(call.options.get("is_causal")) for call in calls]
        assert squares == {"decode": [False], "whole": [True], "chunk": [False, True]}[shape]
        calls.clear()


def test_short_decodes_share_calls(calls: list[Call]) -> None:
    """As many as have no more KV than is to be copied for a call."""
    for shape, number in (("decodes", 1), ("decodes, a long one among them", 2), ("two", 2), ("many decodes", 4)):
        q, store, batch = setting(shape)
        Sdpa(CPU, torch.float32)(q, store, 0, batch)
        assert len(calls) == number, shape
        assert shape == "two" or all(call.k.shape[0] * call.k.shape[2] <= MOST_COPIED for call in calls)
        calls.clear()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_what_pads_a_decode_is_not_seen(dtype: torch.dtype) -> None:
    q, store, batch = setting("decodes", dtype)
    out = Sdpa(CPU, dtype)(q, store, 0, batch)
    assert (out - written_out(q, store, batch)).abs().max() < 8 * torch.finfo(dtype).eps
    batch.__dict__["decode_groups"] = [(*at, torch.ones_like(seen)) for *at, seen in batch.decode_groups]
    assert (Sdpa(CPU, dtype)(q, store, 0, batch) - out).abs().max() > 0.1


@pytest.mark.parametrize(
    ("capability", "dtype", "expands"),
    [((7, 5), torch.float16, True), ((8, 0), torch.float32, True), ((8, 0), torch.bfloat16, False)],
)
@pytest.mark.parametrize("shape", ["mixed", "long", "decodes"])
def test_forms_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, calls: list[Call], capability: tuple[int, int], dtype: torch.dtype,
    expands: bool, shape: str,
) -> None:  # fmt: skip
    """What would be called on a GPU, computed here: KV heads repeated only where they must be, and no mask made."""
    monkeypatch.setattr(sdpa_module, "capability", lambda device: capability)
    torch.backends.cuda.enable_cudnn_sdp(True)
    backend = Sdpa(CPU, dtype)
    assert backend.expands_kv == expands and not torch.backends.cuda.cudnn_sdp_enabled()
    q, store, batch = setting(shape, dtype)
    out = backend(q, store, 0, batch)
    assert (out - written_out(q, store, batch)).abs().max() < 8 * torch.finfo(dtype).eps
    heads, kv_heads = CONFIG.num_attention_heads, CONFIG.num_key_value_heads
    for call in calls:
        one_query = call.q.shape[1] == kv_heads  # its groups are the queries: nothing to repeat
        assert call.k.shape[1] == (heads if expands and not one_query else kv_heads)
        assert bool(call.options.get("enable_gqa")) == (call.q.shape[1] != call.k.shape[1])
        assert shape == "decodes" or not isinstance(call.mask, Tensor) or isinstance(call.mask, CausalBias)


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
