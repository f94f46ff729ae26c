"""The ledger's closed form is what is measured, byte for byte."""

from dataclasses import replace

import pytest
import torch

from lab.checks.equivalence import PrefillCheck, random_prompt
from lab.measure.ledger import (
    Step,
    kv_bytes,
    logits_bytes,
    measure_step,
    prefill_steps,
    run_step,
    step_moments,
    step_peak,
    weight_bytes,
)
from lab.measure.presets import PRESETS
from lab.model.attention import AttentionBackend, select_backend
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore
from lab.model.tiny import TINY, random_weights

torch.set_num_threads(1)
CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
TWO_LAYERS = replace(TINY["tiny"], num_hidden_layers=2)
# Tokens and KV length of a step: alone, whole, chunks, and a chunk of several tiles.
SHAPES = [(1, 1), (1, 40), (7, 7), (7, 40), (16, 16), (33, 33), (33, 300), (2, 700), (96, 96), (600, 700)]
CONFIGS = {
    "tiny": TWO_LAYERS,
    "qwen2": replace(TINY["tiny-qwen2"], num_hidden_layers=2),
    "qwen3": replace(TINY["tiny-qwen3"], num_hidden_layers=2),
    "one layer, narrow mlp": replace(TWO_LAYERS, num_hidden_layers=1, intermediate_size=32),
    "one KV head, wide mlp": replace(TWO_LAYERS, num_key_value_heads=1, intermediate_size=1024),
    "no groups, wide heads": replace(TWO_LAYERS, num_key_value_heads=4, head_dim=128, intermediate_size=64),
    "one head": replace(TWO_LAYERS, num_attention_heads=1, num_key_value_heads=1),
    "one KV head, wide heads": replace(TWO_LAYERS, num_key_value_heads=1, head_dim=128, intermediate_size=64),
    "norm of q": replace(TWO_LAYERS, qk_norm=True, num_key_value_heads=1, head_dim=64, intermediate_size=16),
    "norm of k": replace(TWO_LAYERS, qk_norm=True, num_key_value_heads=4, head_dim=64, intermediate_size=16),
    "bias, wide KV": replace(TWO_LAYERS, qkv_bias=True, num_key_value_heads=4, head_dim=128, intermediate_size=16),
    "logits do not": replace(TWO_LAYERS, vocab_size=16, hidden_size=8, head_dim=4, intermediate_size=8),
}
SMOLLM2, LLAMA_8B = PRESETS["smollm2-135m"], PRESETS["llama-3.1-8b"]


def backend(name: str, config: ModelConfig, dtype: torch.dtype) -> AttentionBackend:
    return select_backend(name, config, CPU, dtype, 16).backend


def check(config: ModelConfig, dtype: torch.dtype, name: str, points: list[tuple[int, int]]) -> set[str]:
    """Measure each point on real tensors against the form; the names of the moments that decided."""
    decoder = Decoder(config, {key: weight.to(dtype) for key, weight in random_weights(config, 0).items()})
    decided = set()
    for num_tokens, kv_length in points:
        step = Step(config, num_tokens, kv_length, dtype, backend(name, config, dtype))
        store = KVStore(config, step.num_blocks, step.block_size, dtype=dtype, device=CPU)
        memory, peak = run_step(step, decoder, store), step_peak(step)
        assert memory.peak_bytes == peak.nbytes, (num_tokens, kv_length, peak, memory.at_peak)
        assert memory.absolute_peak_bytes == decoder.nbytes + store.nbytes + peak.nbytes
        decided.add(peak.name)
    return decided


@pytest.mark.parametrize("name", ["sdpa", "math"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_shape(dtype: torch.dtype, name: str) -> None:
    check(TWO_LAYERS, dtype, name, SHAPES)


def test_every_ratio() -> None:
    decided = set()
    points = [(1, 40), (7, 40), (9, 9), (33, 33), (33, 300)]
    for config in CONFIGS.values():
        for dtype in (torch.float32, torch.bfloat16):
            for name in ("sdpa", "math"):
                decided |= check(config, dtype, name, points)
    decided |= check(CONFIGS["logits do not"], torch.float32, "sdpa", [(1, 4000)])
    qwen3 = CONFIGS["qwen3"]
    sizes = [(33, torch.float32), (9, torch.bfloat16)]
    steps = [Step(qwen3, n, 300, dtype, backend(name, qwen3, dtype)) for name in ("sdpa", "math") for n, dtype in sizes]
    assert decided == {moment.name for step in steps for moment in step_moments(step)}  # none is listed for nothing


def test_the_form_for_most_models() -> None:
    """C * (2 d + 2 f + 2 D) * e beside 24 bytes of ids a token: nothing in it grows with the context."""
    for num_tokens in (1, 64, 512, 2048):
        peak = step_peak(Step(SMOLLM2, num_tokens, num_tokens, torch.float32, backend("sdpa", SMOLLM2, torch.float32)))
        if num_tokens > 1:
            assert peak.name == "mlp"
            assert peak.nbytes == num_tokens * (2 * 576 + 2 * 1536 + 2 * 64) * 4 + 24 * num_tokens + 8
        else:
            assert peak.name == "logits"  # one token's vocabulary is wider than all else it needs


@pytest.mark.parametrize(("num_tokens", "kv_length"), [(512, 4096), (300, 300), (1, 4096)])
def test_the_shape_of_a_real_model(num_tokens: int, kv_length: int) -> None:
    step = Step(SMOLLM2, num_tokens, kv_length, torch.float32, backend("sdpa", SMOLLM2, torch.float32))
    assert measure_step(step).peak_bytes == step_peak(step).nbytes


def test_a_model_nobody_here_could_load() -> None:
    sdpa = backend("sdpa", LLAMA_8B, torch.bfloat16)
    whole = Step(LLAMA_8B, 131072, 131072, torch.bfloat16, sdpa)
    chunk = Step(LLAMA_8B, 2048, 131072, torch.bfloat16, sdpa)
    for step in (whole, chunk):
        memory, peak = measure_step(step), step_peak(step)
        assert memory.peak_bytes == peak.nbytes
        weights, kv = weight_bytes(LLAMA_8B, torch.bfloat16), kv_bytes(LLAMA_8B, 131072, torch.bfloat16)
        assert memory.absolute_peak_bytes == weights + kv + peak.nbytes
    assert weights == 8030261248 * 2  # the 8,030,261,248 parameters of Llama 3.1 8B
    assert kv == 16 * 2**30
    assert step_peak(whole).nbytes > 9 * 2**30 > 44 * step_peak(chunk).nbytes


@pytest.mark.parametrize("name", ["sdpa", "math"])
def test_a_prompt_through_the_engine(name: str) -> None:
    """Scheduler, loop, executor and sampling add nothing to the highest of the steps."""
    decoder = Decoder(TWO_LAYERS, random_weights(TWO_LAYERS, 0))
    attention = backend(name, TWO_LAYERS, torch.float32)
    engine = PrefillCheck(decoder, random_prompt(decoder, 97), attention=attention)
    whole = Step(TWO_LAYERS, 97, 97, torch.float32, attention)
    for chunk_size in (1, 5, 16, 40, 96, 97, 200):
        steps = prefill_steps(whole, chunk_size)
        assert sum(step.num_tokens for step in steps) == 97 and len(steps) == -(-97 // chunk_size)
        assert engine.peak_bytes(chunk_size) == max(step_peak(step).nbytes for step in steps)


@pytest.mark.parametrize("name", TINY)
def test_what_stays(name: str) -> None:
    config = TINY[name]
    decoder = Decoder(config, random_weights(config, 0))
    assert weight_bytes(config, torch.float32) == decoder.nbytes
    assert weight_bytes(config, torch.bfloat16) * 2 == decoder.nbytes
    store = KVStore(config, 5, 16, dtype=torch.float16, device=CPU)
    assert kv_bytes(config, 5 * 16, torch.float16) == store.nbytes
    assert logits_bytes(config, 3, torch.float32) == decoder.logits(torch.zeros(3, config.hidden_size)).nbytes


def test_a_gpu_needs_no_mask() -> None:
    """By the code of PyTorch's CUDA kernels; `tests/gpu` measures it."""
    step = Step(LLAMA_8B, 2048, 131072, torch.bfloat16, backend("sdpa", LLAMA_8B, torch.bfloat16))
    on_gpu = step_peak(replace(step, device=torch.device("cuda", 0)))
    assert on_gpu.name == "mlp" and on_gpu.nbytes == 2048 * (2 * 4096 + 2 * 14336 + 2 * 128) * 2 + 24 * 2048 + 8
