"""Chunked and whole prefill on the GPU, and the attention backends against one another."""

import pytest
import torch

from lab.checks.equivalence import check_prefill, random_prompt
from lab.model.attention import AttentionBackend, select_backend
from lab.model.batch import Batch, Segment
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.weights import load_model

LENGTH, CHUNK_SIZES = 200, [1, 7, 64, 150]  # a step of 1 token is all launches: a longer prompt would take a minute


@pytest.mark.parametrize("spec", ["tiny", "tiny-qwen3"])
def test_chunks_are_equivalent(device: torch.device, dtype: torch.dtype, spec: str) -> None:
    decoder = load_model(spec, dtype=dtype, device=device).decoder
    report = check_prefill(decoder, random_prompt(decoder, LENGTH), CHUNK_SIZES, repeats=1)
    assert report.ok, [(row.chunk_size, row.problems) for row in report.rows if not row.ok]


def logits(decoder: Decoder, attention: AttentionBackend, block_size: int) -> torch.Tensor:
    """Of a batch that mixes a whole prompt, a chunk in scattered blocks and a decode, over a random cache; float32."""
    store = KVStore(decoder.config, 16, block_size, dtype=decoder.dtype, device=decoder.device)
    generator = torch.Generator(decoder.device).manual_seed(0)
    for pool in (*store.keys, *store.values):
        pool.normal_(generator=generator)
    segments = [
        Segment(list(range(block_size + 5)), 0, [0, 1], True),
        Segment(list(range(40)), 2 * block_size - 3, [9, 3, 12, 7, 5], True),
        Segment([17], 3 * block_size - 1, [4, 6, 8], True),
    ]
    with torch.inference_mode():
        batch = Batch.build(segments, block_size, decoder.device)
        hidden = decoder(batch.token_ids, batch.positions, store, batch, attention)
        return decoder.logits(hidden[batch.logit_rows]).float()


@pytest.mark.parametrize("block_size", [16, 256])
def test_the_backends_agree(device: torch.device, dtype: torch.dtype, block_size: int) -> None:
    """What is selected (varlen where its probe passes), sdpa, and attention as it is written down."""
    decoder = load_model("tiny", dtype=dtype, device=device).decoder
    selected = select_backend(None, decoder.config, device, dtype, block_size)
    assert selected.backend.name in ("varlen", "sdpa") and selected.reason
    if dtype == torch.float32:
        assert selected.backend.name == "sdpa"  # varlen has no float32
    plain = logits(decoder, select_backend("math", decoder.config, device, dtype, block_size).backend, block_size)
    sdpa = logits(decoder, select_backend("sdpa", decoder.config, device, dtype, block_size).backend, block_size)
    tolerance = 20 * torch.finfo(dtype).eps * plain.abs().max().item()
    for other in (sdpa, logits(decoder, selected.backend, block_size)):
        assert (other - plain).abs().max().item() <= tolerance
