"""Chunked equals whole on real arithmetic, and every planted fault is caught."""

from dataclasses import replace

import pytest
import torch

from lab.checks.equivalence import PrefillCheck, check_prefill, random_prompt
from lab.checks.faults import (
    FAULTS,
    MaskUpperLeft,
    OffsetCountedTwice,
    PartialChunkSampled,
    RopeRestarted,
    StaleLastRow,
    WrongSlotAtBlockEdge,
)
from lab.checks.report import as_json, as_table
from lab.core import ConfigError, RequestRejected
from lab.engine.executor import TorchExecutor
from lab.model.sdpa import HALF, Sdpa
from lab.model.weights import load_model

SYMPTOM = {
    RopeRestarted: "KV of layer 0: ",
    OffsetCountedTwice: "KV of layer 0: ",
    MaskUpperLeft: "KV of layer 1: ",  # the first layer's KV does not depend on attention
    WrongSlotAtBlockEdge: "bytes of KV were written",
    PartialChunkSampled: "steps yielded a token, not 1",
    StaleLastRow: "not sampled from the last row",
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("attention", ["sdpa", "math"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["tiny", "tiny-llama3", "tiny-qwen2", "tiny-qwen3"])
def test_chunked_equals_whole(name, dtype, attention):
    decoder = load_model(name, dtype=dtype, device="cpu").decoder
    report = check_prefill(decoder, random_prompt(decoder, 70), [1, 7, 16, 33, 100], attention=attention, repeats=1)
    assert report.ok, as_table(report)
    assert [row.chunks for row in report.rows] == [70, 10, 5, 3, 1, 1]
    assert {row.kv_bytes for row in report.rows} == {2 * 4 * 2 * decoder.config.head_dim * 70 * decoder.dtype.itemsize}
    beyond, whole = report.rows[-2:]  # a chunk beyond the prompt is the whole pass, to the bit
    assert beyond.logits.delta == whole.logits.delta == 0 and beyond.peak_bytes == whole.peak_bytes
    peaks = [row.peak_bytes for row in report.rows[:5]]
    assert peaks == sorted(peaks) and peaks[0] < peaks[-1] / 5


@pytest.mark.parametrize("prompt_tokens", [15, 16, 17])
@pytest.mark.parametrize("block_size", [1, 4])
def test_block_and_chunk_edges(prompt_tokens, block_size):
    decoder = load_model("tiny", device="cpu").decoder
    prompt = random_prompt(decoder, prompt_tokens, seed=1)
    report = check_prefill(decoder, prompt, [1, 3, 4, 5, 8, 16, 32], block_size=block_size, repeats=1)
    assert report.ok, as_table(report)
    for row in report.rows[:-1]:
        assert row.chunks == -(-prompt_tokens // row.chunk_size)
        assert row.logits.delta <= 1e-4


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("chunk_size", [7, 16, 25])
def test_every_planted_fault_is_caught_by_its_symptom(fault, chunk_size, dtype):
    decoder = load_model("tiny", dtype=dtype, device="cpu").decoder
    prompt = random_prompt(decoder, 100)
    if fault is WrongSlotAtBlockEdge and chunk_size == 16:
        chunk_size = 17  # 16 starts every chunk on a block of its own, and nothing would be overwritten early
    report = check_prefill(decoder, prompt, [chunk_size], executor_type=fault, repeats=1)
    row = report.rows[0]
    assert row.chunks >= 4 and not row.ok
    assert any(SYMPTOM[fault] in problem for problem in row.problems), row.problems
    assert "NO" in as_table(report) and not as_json(report)["ok"]


class PositionsNegated(TorchExecutor):
    """Positions run backwards, in chunks and in the whole pass alike: nothing differs, and all of it is wrong."""

    def build_batch(self, plan, scheduler):
        batch = super().build_batch(plan, scheduler)
        return replace(batch, positions=-batch.positions)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_fault_of_the_whole_pass_too_is_caught_by_the_higher_precision(dtype):
    decoder = load_model("tiny", dtype=dtype, device="cpu").decoder
    report = check_prefill(decoder, random_prompt(decoder, 60), [15], executor_type=PositionsNegated, repeats=1)
    assert all("KV of layer 0: error" in " ".join(row.problems) for row in report.rows), as_table(report)


def test_the_reference_asks_nothing_of_a_backend_that_knows_half_precision_only():
    class HalfOnly(Sdpa):
        def __call__(self, q, store, layer, batch):
            assert q.dtype in HALF
            return super().__call__(q, store, layer, batch)

    decoder = load_model("tiny", dtype="bfloat16", device="cpu").decoder
    check = PrefillCheck(decoder, random_prompt(decoder, 40), attention=HalfOnly(decoder.device, decoder.dtype))
    assert check.reference.decoder.dtype == torch.float32 and all(row.ok for row in check.rows([15], repeats=1))


def test_bad_input_is_named():
    decoder = load_model("tiny", device="cpu").decoder
    with pytest.raises(ConfigError, match="chunk size is 0"):
        check_prefill(decoder, [1, 2], [4, 0])
    with pytest.raises(RequestRejected, match="token id 512"):
        check_prefill(decoder, [1, 512], [4])
    with pytest.raises(RequestRejected, match="4097, above the position limit of 4096"):
        check_prefill(decoder, [1] * 4096, [4])
    with pytest.raises(ConfigError, match=f"block_size is {10**30}, above the position limit of 4096"):
        check_prefill(decoder, [1, 2], [4], block_size=10**30)
    with pytest.raises(ConfigError, match="number of prompt tokens is 0"):
        random_prompt(decoder, 0)
