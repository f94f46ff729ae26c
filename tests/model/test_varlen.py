"""The varlen backend without a GPU, over a stand-in for `varlen_attn`.

The stand-in does what PyTorch 2.13 documents and refuses the rest. It is slow and computes in float32; what it holds us
to is the contract: lengths, windows, block table, dtypes.
"""

import inspect
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import varlen as torch_varlen

from lab.core.errors import LabError
from lab.model import sdpa as sdpa_module
from lab.model import varlen as varlen_module
from lab.model.attention import Sdpa, Varlen, select_backend
from lab.model.batch import Batch, Segment
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.tiny import TINY, random_weights

CPU = torch.device("cpu")
PAGE = 256
CONFIG = replace(TINY["tiny"], num_hidden_layers=1)
UNGROUPED = replace(CONFIG, num_key_value_heads=4)


def stand_in(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: Any = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor:
    """`varlen_attn` on a paged cache, after its documentation and the checks of flash-attention 2."""
    assert return_aux is None
    heads, kv_heads = query.shape[1], key.shape[-2]
    require(query.dtype in (torch.float16, torch.bfloat16), "FlashAttention only support fp16 and bf16 data type")
    require(query.dtype == key.dtype == value.dtype, "query and key must have the same dtype")
    require(query.shape[-1] % 8 == 0 and query.shape[-1] <= 256, "head_size should be a multiple of 8, at most 256")
    if heads != kv_heads and not enable_gqa:
        raise ValueError("Expect query and key/value to have the same number of heads. Try setting enable_gqa=True")
    require(heads % kv_heads == 0, "Number of heads in key/value must divide number of heads in query")
    n = len(cu_seq_q) - 1
    for lengths, size in ((cu_seq_q, n + 1), (cu_seq_k, n + 1), (seqused_k, n)):
        if lengths is not None:
            require(lengths.dtype == torch.int32 and lengths.shape == (size,), f"lengths must be int32 [{size}]")
    require(cu_seq_q[0] == 0 and cu_seq_q[-1] == len(query), "cu_seq_q must run from 0 to the number of queries")
    if block_table is None:
        raise NotImplementedError("the lab always has a block table")
    require(block_table.dtype == torch.int32, "block_table must have dtype torch.int32")
    require(block_table.ndim == 2 and len(block_table) == n, "block_table must have a row for each sequence")
    require(seqused_k is not None, "block_table requires seqused_k")
    require(key.ndim == 4 and key.shape[1] % PAGE == 0, "Paged KV cache block size must be divisible by 256")

    query_lens, key_lens = cu_seq_q.diff().tolist(), seqused_k.tolist()  # type: ignore[union-attr]
    require(max(query_lens) <= max_q and max(key_lens) <= max_k, "a sequence is longer than max_q or max_k")
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    left, right = window_size
    require(min(left, right) >= -1, "a window is -1, unlimited, or a number of tokens")
    out = []
    for q, length, table in zip(query.float().split(query_lens), key_lens, block_table):
        pages = table[: -(-length // key.shape[1])].long()
        k, v = (x[pages].flatten(0, 1)[:length].float().repeat_interleave(heads // kv_heads, 1) for x in (key, value))
        # Row i of m queries is position length - m + i: windows are aligned to the lower right corner.
        distance = torch.arange(length) - (torch.arange(len(q))[:, None] + length - len(q))
        seen = torch.ones_like(distance, dtype=torch.bool)
        seen &= distance <= right if right >= 0 else seen
        seen &= -distance <= left if left >= 0 else seen
        scores = torch.einsum("qhd,khd->hqk", q, k) * scale
        out.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, float("-inf")).softmax(-1), v))
    return torch.cat(out).to(query.dtype)


def require(condition: Any, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the CPU pass for a GPU of this capability, with this `varlen_attn`."""

    def pretend(capability: tuple[int, int] = (8, 0), varlen_attn: Callable | None = stand_in) -> None:
        monkeypatch.setattr(varlen_module, "capability", lambda device: capability)
        monkeypatch.setattr(varlen_module, "varlen_attn", varlen_attn)

    return pretend


def setting(config: ModelConfig, dtype: torch.dtype) -> tuple[Tensor, KVStore, Batch]:
    """A decode, chunks, a whole prompt, a first token; pages scattered, the store full of noise."""
    generator = torch.Generator().manual_seed(0)
    segments = [
        Segment([0], PAGE + 40, (7, 2), True),
        Segment([0] * 60, 30, (4,), True),
        Segment([0] * 50, 0, (9,), True),
        Segment([0] * 6, 2 * PAGE - 6, (1, 8), True),
        Segment([0], 0, (0,), True),
        Segment([0] * 300, 290, (3, 6, 5), True),
    ]
    batch = Batch.build(segments, PAGE, CPU, 10)
    store = KVStore(config, 10, PAGE, dtype=dtype, device=CPU)
    for pool in (*store.keys, *store.values):
        pool.copy_(torch.randn(pool.shape, generator=generator))
    q = torch.randn((len(batch.token_ids), config.num_attention_heads, config.head_dim), generator=generator)
    return q.to(dtype), store, batch


def test_the_stand_in_has_the_signature_of_pytorch() -> None:
    theirs, ours = (inspect.signature(f).parameters.values() for f in (torch_varlen.varlen_attn, stand_in))
    assert [(p.name, p.kind, p.default) for p in theirs] == [(p.name, p.kind, p.default) for p in ours]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("config", [CONFIG, UNGROUPED], ids=["grouped", "ungrouped"])
def test_equal_to_sdpa(gpu, config: ModelConfig, dtype: torch.dtype) -> None:
    gpu()
    q, store, batch = setting(config, dtype)
    difference = (Varlen()(q, store, 0, batch) - Sdpa(CPU, dtype)(q, store, 0, batch)).abs().max()
    assert difference < 4 * torch.finfo(dtype).eps


@pytest.fixture
def calls(gpu) -> list[dict[str, Any]]:
    """All arguments of each call, by name."""
    recorded: list[dict[str, Any]] = []

    def record(*args: Any, **options: Any) -> Tensor:
        recorded.append(inspect.signature(stand_in).bind(*args, **options).arguments)
        return stand_in(*args, **options)

    record.__signature__ = inspect.signature(stand_in)  # type: ignore[attr-defined]
    gpu(varlen_attn=record)
    return recorded


@pytest.mark.parametrize("config", [CONFIG, UNGROUPED], ids=["grouped", "ungrouped"])
def test_what_it_is_called_with(calls, config: ModelConfig) -> None:
    """Heads are grouped only where they are, and never split: the sums of a split depend on the batch."""
    q, store, batch = setting(config, torch.bfloat16)
    Varlen()(q, store, 0, batch)
    (call,) = calls
    assert call["enable_gqa"] == (config is CONFIG)
    assert call["num_splits"] == 1


def test_selected_where_it_works(gpu) -> None:
    gpu()
    for requested in (None, "varlen"):
        selected = select_backend(requested, CONFIG, CPU, torch.bfloat16, PAGE)
        assert selected.backend.name == "varlen"
        assert selected.reason == "varlen_attn works here and agrees with sdpa"
    assert select_backend("sdpa", CONFIG, CPU, torch.bfloat16, PAGE).backend.name == "sdpa"


def no_block_table(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, window_size=(-1, -1)):  # PyTorch 2.10
    raise AssertionError("called")


@pytest.mark.parametrize(
    ("pretend", "dtype", "block_size", "reason"),
    [
        ({"capability": (7, 5)}, torch.float16, PAGE, "it needs compute capability 8.0, the device has 7.5"),
        ({}, torch.float32, PAGE, "it computes in float16 and bfloat16, not float32"),
        ({"varlen_attn": None}, torch.float16, PAGE, "has no varlen_attn that takes a block_table"),
        ({"varlen_attn": no_block_table}, torch.float16, PAGE, "has no varlen_attn that takes a block_table"),
        ({}, torch.bfloat16, 16, r"it refused blocks of 16 tokens \(Paged KV cache block size must"),
    ],
)
def test_refusals(gpu, pretend: dict[str, Any], dtype: torch.dtype, block_size: int, reason: str) -> None:
    """Without a word of one's own sdpa is taken, with the reason; asked for, it is an error with the reason."""
    gpu(**pretend)
    selected = select_backend(None, CONFIG, CPU, dtype, block_size)
    assert selected.backend.name == "sdpa"
    assert selected.reason.startswith("not varlen: ")
    with pytest.raises(LabError, match=f"attention 'varlen' does not work here: .*{reason}") as caught:
        select_backend("varlen", CONFIG, CPU, dtype, block_size)
    assert selected.reason.removeprefix("not varlen: ") in str(caught.value)


def changed(**changes: Any) -> Callable[..., Tensor]:
    """The stand-in called with other arguments than the caller's."""

    def call(*args: Any, **options: Any) -> Tensor:
        return stand_in(*args, **{**options, **{name: change(options[name]) for name, change in changes.items()}})

    call.__signature__ = inspect.signature(stand_in)  # type: ignore[attr-defined]
    return call


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"seqused_k": lambda _: None}, "block_table requires seqused_k"),
        ({"block_table": lambda table: table.long()}, "block_table must have dtype torch.int32"),
        ({"seqused_k": lambda lens: lens.long()}, "lengths must be int32"),
        ({"enable_gqa": lambda _: False}, "same number of heads"),
        ({"window_size": lambda _: (-1, -1)}, "it is off by"),  # sees the future
        ({"window_size": lambda _: (8, 0)}, "it is off by"),  # forgets the past
        ({"seqused_k": lambda lens: lens + 1}, "it is off by|longer than max_q or max_k"),
        ({"block_table": lambda table: table.flip(0)}, "it is off by"),
    ],
)
def test_a_wrong_call_is_caught(gpu, wrong: dict[str, Callable], reason: str) -> None:
    """By the stand-in's checks, or by the probe, which compares with sdpa."""
    gpu(varlen_attn=changed(**wrong))
    refusal = varlen_module.varlen_refusal(CONFIG, CPU, torch.bfloat16, PAGE)
    assert refusal is not None
    assert re.search(reason, refusal), refusal


def test_what_is_tried(calls) -> None:
    """A decode over two pages out of order, the second half of a page, a whole page; all pages of the store in use."""
    assert varlen_module.varlen_refusal(CONFIG, CPU, torch.bfloat16, PAGE) is None
    (call,) = calls
    assert call["cu_seq_q"].diff().tolist() == [1, PAGE // 2, PAGE]
    assert call["seqused_k"].tolist() == [PAGE + 1, PAGE, PAGE]
    assert call["block_table"].tolist() == [[2, 0], [3, 0], [1, 0]]
    assert len(call["key"]) == 4


@pytest.mark.parametrize(("difference", "refused"), [(0.05, False), (0.06, True)])
def test_how_far_off_it_may_be(gpu, monkeypatch: pytest.MonkeyPatch, difference: float, refused: bool) -> None:
    gpu()
    monkeypatch.setattr(varlen_module, "_probe", lambda *_: difference)
    assert (varlen_module.varlen_refusal(CONFIG, CPU, torch.bfloat16, PAGE) is not None) == refused


def test_a_pytorch_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", None)  # importing it is an ImportError
    assert runpy.run_path(varlen_module.__file__)["varlen_attn"] is None


def test_a_kernel_that_answers_nan_is_caught(gpu) -> None:
    def nan(*args: Any, seqused_k=None, block_table=None, num_splits=None, **options: Any) -> Tensor:
        return torch.full_like(args[0], float("nan"))

    gpu(varlen_attn=nan)
    assert "it is off by nan" in str(varlen_module.varlen_refusal(CONFIG, CPU, torch.bfloat16, PAGE))


def test_a_model_through_it(gpu, driver) -> None:
    """Prompts in ragged chunks and decodes, all layers: the logits of sdpa, to bfloat16 rounding."""
    gpu()
    config = TINY["tiny"]
    decoder = Decoder(config, random_weights(config, 0)).to(torch.bfloat16)
    tokens = torch.randint(config.vocab_size, (400,), generator=torch.Generator().manual_seed(0)).tolist()
    logits = []
    for attention in (Varlen(), Sdpa(CPU, torch.bfloat16)):
        ours = driver(decoder, attention, block_size=PAGE, num_blocks=6)
        steps = [
            ours.step(a=tokens[:300], b=tokens[:20]),
            ours.step(b=tokens[20:21], a=tokens[300:]),
            ours.step(a=tokens[:1], b=tokens[:1]),
        ]
        logits.append(torch.cat([part for step in steps for part in step.values()]).float())
    varlen, sdpa = logits
    assert (varlen - sdpa).abs().max() < 0.2  # logits have a size of 1 to 4; bfloat16 keeps 8 bits of them
    assert (varlen - sdpa).abs().mean() < 0.02


def test_sdpa_of_the_probe_is_that_of_the_device(gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the probe compares with SDPA as it runs on that GPU."""
    gpu()
    seen = []
    monkeypatch.setattr(sdpa_module, "capability", lambda device: seen.append(device) or (8, 0))
    assert varlen_module.varlen_refusal(CONFIG, CPU, torch.bfloat16, PAGE) is None
    assert seen == [CPU]
