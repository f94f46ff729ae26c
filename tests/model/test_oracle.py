"""Hugging Face transformers on the same weights: equal bit for bit where the work is cut alike, else to rounding."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, PreTrainedModel, Qwen2Config, Qwen3Config
from transformers.utils import logging

from lab.model.decoder import Decoder
from lab.model.weights import load_model

logging.disable_progress_bar()

SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FAMILIES: dict[str, PreTrainedConfig] = {
    "llama 3": LlamaConfig(**SIZES, rope_parameters=LLAMA3),
    "llama, linear rope, all biases, no groups": LlamaConfig(
        **{**SIZES, "num_key_value_heads": 4},
        rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
        attention_bias=True,
    ),
    "qwen2, tied": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3, wide heads": Qwen3Config(**SIZES, head_dim=32),
}
PROMPT = torch.randint(SIZES["vocab_size"], (150,), generator=torch.Generator().manual_seed(0)).tolist()
EPS = 2e-5  # of logits of size 1 to 10, float32


def random_model(config: PreTrainedConfig) -> PreTrainedModel:
    """Every weight random: transformers' own initialisation has biases of 0 and norms of 1, which hide mistakes."""
    generator = torch.Generator().manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(1 + 0.2 * noise if "norm" in name else 0.15 * noise)
    return model


@pytest.fixture(scope="module", params=FAMILIES)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    # Small shards: the index is read too.
    random_model(FAMILIES[request.param]).save_pretrained(directory, max_shard_size="100KB")
    return directory


@pytest.fixture(scope="module")
def decoder(saved: Path) -> Decoder:
    return load_model(str(saved), dtype="float32", device="cpu").decoder


@pytest.fixture(scope="module")
def oracle(saved: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32, attn_implementation="sdpa")


@torch.inference_mode()
def oracle_logits(model: PreTrainedModel, tokens: list[int]) -> Tensor:
    return model(torch.tensor([tokens])).logits[0]


@torch.inference_mode()
def oracle_greedy(model: PreTrainedModel, tokens: list[int], num_tokens: int) -> list[int]:
    out = model.generate(torch.tensor([tokens]), max_new_tokens=num_tokens, do_sample=False)
    return out[0, len(tokens) :].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("consecutive", [True, False])
def test_whole_is_equal_bit_for_bit(saved: Path, driver, dtype: torch.dtype, consecutive: bool) -> None:
    oracle = AutoModelForCausalLM.from_pretrained(saved, dtype=dtype, attn_implementation="sdpa")
    ours = driver(load_model(str(saved), dtype=dtype, device="cpu").decoder, consecutive=consecutive)
    logits = ours.step(a=PROMPT)["a"]
    assert torch.equal(logits, oracle_logits(oracle, PROMPT))
    assert 0.5 < logits.float().std() < 10  # neither flat nor saturated, so equality means something


@pytest.mark.parametrize("attention", ["sdpa", "math"])
@pytest.mark.parametrize("chunk_size", [1, 7, 64, 149, 150])
def test_chunks(decoder: Decoder, oracle: PreTrainedModel, driver, attention: str, chunk_size: int) -> None:
    expected = oracle_logits(oracle, PROMPT)
    logits = driver(decoder, attention).chunks(PROMPT, chunk_size)
    assert (logits - expected).abs().max() < EPS
    assert torch.equal(logits.argmax(-1), expected.argmax(-1))


def test_greedy_tokens(decoder: Decoder, oracle: PreTrainedModel, driver) -> None:
    ours = driver(decoder)
    logits = ours.step(a=PROMPT[:40])["a"]
    assert list(ours.greedy("a", logits, 20)) == oracle_greedy(oracle, PROMPT[:40], 20)


def test_a_ragged_batch(decoder: Decoder, oracle: PreTrainedModel, driver) -> None:
    """Five prompts of different lengths in one step, one token long among them."""
    prompts = {name: PROMPT[i : i + n] for i, (name, n) in enumerate(zip("abcde", (30, 1, 90, 16, 17)))}
    for name, logits in driver(decoder).step(**prompts).items():
        expected = oracle_logits(oracle, prompts[name])
        assert (logits - expected).abs().max() < EPS, name


def test_prefill_and_decode_mixed(decoder: Decoder, oracle: PreTrainedModel, driver) -> None:
    """One sequence decodes in every step, beside another's chunks and a third that comes whole in the middle."""
    prompts = {"a": PROMPT[:20], "b": PROMPT[20:80], "c": PROMPT[80:113]}
    ours = driver(decoder)
    tokens: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    last = ours.step(a=prompts["a"])

    def next_token(name: str) -> list[int]:
        tokens[name].append(int(last[name][-1].argmax()))
        return tokens[name][-1:]

    for start in range(0, 60, 15):
        feed = {"b": prompts["b"][start : start + 15], "a": next_token("a")}
        if start == 30:
            feed = {"c": prompts["c"], **feed}
        last |= ours.step(**feed)
    for _ in range(8):
        last |= ours.step(**{name: next_token(name) for name in ("c", "a", "b")})
    for name, prompt in prompts.items():
        assert tokens[name] == oracle_greedy(oracle, prompt, len(tokens[name])), name
    assert [len(t) for t in tokens.values()] == [12, 8, 8]


def test_only_the_rows_that_are_wanted(decoder: Decoder, driver) -> None:
    ours = driver(decoder)
    batch = ours.batch({"a": PROMPT[:9], "b": PROMPT[:4]})
    assert batch.logit_rows.tolist() == [8, 12]
    with torch.inference_mode():
        hidden = decoder(batch.token_ids, batch.positions, ours.store, batch, ours.attention)
        some = decoder.logits(hidden[batch.logit_rows])
        assert some.shape == (2, decoder.config.vocab_size)
        assert (some - decoder.logits(hidden)[[8, 12]]).abs().max() < EPS
