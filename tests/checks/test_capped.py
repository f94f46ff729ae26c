"""Under a cap the whole prompt is refused, chunks fit, and the engine is as before."""

import sys

import pytest
import torch

from lab.checks import capped
from lab.checks.capped import capped_prefill, kernel_capped_prefill
from lab.checks.equivalence import random_prompt
from lab.core import SamplingParams
from lab.engine import Engine
from lab.measure.cap import MemoryCap, OutOfMemory
from lab.measure.memory import PeakMemory
from lab.model.weights import load_model

torch.set_num_threads(1)
LENGTH = 1024
KIB = 2**10


@pytest.fixture(scope="module")
def model():
    return load_model("tiny", device="cpu")


@pytest.fixture(scope="module")
def prompt(model):
    return random_prompt(model.decoder, LENGTH)


def test_whole_is_refused_and_chunks_fit(model, prompt) -> None:
    small, fair, whole = capped_prefill(model.decoder, prompt, [64, 128, LENGTH], lambda: MemoryCap(1024 * KIB))
    assert small.fits and fair.fits and not whole.fits and "cap is 1.0 MiB" in whole.refused
    assert [row.chunks for row in (small, fair, whole)] == [16, 8, 1]
    assert [row.peak_bytes for row in (small, fair)] == [row.predicted_bytes for row in (small, fair)]
    assert whole.predicted_bytes == LENGTH * (2 * 128 + 2 * 256 + 2 * 32) * 4 + 24 * LENGTH + 8  # the ledger's form
    assert whole.computed_tokens == 0  # the one step was taken back
    assert small.token == fair.token == whole.token  # and done when the cap was gone
    assert {row.leaked_bytes for row in (small, fair, whole)} == {0}


def test_the_cap_is_met_to_the_byte(model, prompt) -> None:
    (free,) = capped_prefill(model.decoder, prompt, [128], lambda: MemoryCap(1024 * KIB))
    (exact,) = capped_prefill(model.decoder, prompt, [128], lambda: MemoryCap(free.predicted_bytes))
    (below,) = capped_prefill(model.decoder, prompt, [128], lambda: MemoryCap(free.predicted_bytes - 1))
    assert exact.fits and not below.fits


def test_a_later_chunk_is_refused(model, prompt) -> None:
    """`math` needs more with each chunk: those before the refused one stay computed, it alone is taken back."""
    (row,) = capped_prefill(model.decoder, prompt, [64], lambda: MemoryCap(1280 * KIB), attention="math")
    assert not row.fits and 0 < row.computed_tokens < LENGTH and row.computed_tokens % 64 == 0
    (whole,) = capped_prefill(model.decoder, prompt, [LENGTH], lambda: MemoryCap(2**40), attention="math")
    assert row.token == whole.token and row.leaked_bytes == 0


def test_a_leak_is_reported(model, prompt, monkeypatch) -> None:
    """Planted: an engine that keeps the hidden states of its steps."""
    kept = []

    def leaking(prefill, cap) -> None:
        prefill.loop.executor.observe = lambda hidden, logits: kept.append(hidden)
        prefill.run()

    monkeypatch.setattr(capped, "_run", leaking)
    (row,) = capped_prefill(model.decoder, prompt, [LENGTH], lambda: MemoryCap(1024 * KIB))
    assert row.leaked_bytes == LENGTH * 128 * 4


def test_the_engine_goes_on(model, prompt) -> None:
    """Out of memory in the middle of serving: every block and byte is back, and the next request passes."""
    engine = Engine(model, max_num_batched_tokens=LENGTH, max_num_seqs=4)
    pool = engine.loop.scheduler.pool
    tokens = SamplingParams(max_tokens=4)
    expected = engine.generate([prompt[:100]], tokens)[0].token_ids
    free = pool.num_free
    with PeakMemory() as memory, MemoryCap(1024 * KIB):
        for _ in range(2):
            try:
                engine.generate([prompt[:100], prompt], tokens)
            except OutOfMemory as error:
                message = str(error)
            assert "out of memory" in message and pool.num_free == free and not engine.loop.scheduler.requests
            assert engine.generate([prompt[:100]], tokens)[0].token_ids == expected
    assert memory.live_bytes == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's cap is Linux's")
def test_the_kernel_refuses_the_whole() -> None:
    whole, chunk = kernel_capped_prefill(2048, [2048, 256], 24 * 2**20)
    assert not whole.fits and "can't allocate memory" in whole.refused and whole.predicted_bytes > 40 * 2**20
    assert chunk.fits and chunk.peak_bytes == chunk.predicted_bytes < 12 * 2**20
    assert whole.token == chunk.token and whole.leaked_bytes == chunk.leaked_bytes == 0
    with pytest.raises(capped.LabError, match="the capped process failed: .*the cap is -1"):
        kernel_capped_prefill(16, [16], -1)
