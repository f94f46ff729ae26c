"""Configs as Hugging Face writes them, rotary frequencies against transformers' own, and what is not supported."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, Qwen2Config, Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from lab.core.errors import LabError
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.rope import RopeConfig, rope_tables, rotate_
from lab.model.tiny import TINY, random_weights

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "eos_token_id": [7, 9],
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 256}


def test_what_is_read() -> None:
    config = ModelConfig.from_hf(LLAMA | {"rope_theta": 5e5})
    assert (config.head_dim, config.rms_norm_eps, config.rope.theta) == (16, 1e-5, 5e5)
    assert config.eos_token_ids == {7, 9}
    assert not (config.tie_word_embeddings or config.qkv_bias or config.o_bias or config.qk_norm)
    assert ModelConfig.from_hf(LLAMA | {"num_key_value_heads": None}).num_key_value_heads == 4
    assert ModelConfig.from_hf(LLAMA | {"head_dim": 40}).head_dim == 40
    assert ModelConfig.from_hf(LLAMA | {"eos_token_id": 7}).eos_token_ids == {7}
    assert ModelConfig.from_hf(LLAMA | {"eos_token_id": None}).eos_token_ids == frozenset()
    assert ModelConfig.from_hf(LLAMA | {"architectures": ["Qwen3ForCausalLM"]}).head_dim == 128  # Qwen3Config's default


@pytest.mark.parametrize("family", [LlamaConfig, Qwen2Config, Qwen3Config])
def test_the_number_of_weights(family: type) -> None:
    """Names and shapes are those of transformers' model."""
    from transformers import AutoModelForCausalLM

    theirs = family(**{k: v for k, v in LLAMA.items() if k != "architectures"}, tie_word_embeddings=False)
    theirs.architectures = [family.__name__.replace("Config", "ForCausalLM")]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(theirs)
    assert ModelConfig.from_hf(theirs.to_dict()).parameter_shapes() == {
        name: tuple(weight.shape) for name, weight in model.named_parameters()
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["MistralForCausalLM"]}, "architecture 'MistralForCausalLM' is not supported; there"),
        ({"architectures": None}, "architecture 'none' is not supported"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope type 'yarn' is not supported; there is"),
        ({"rope_parameters": {"rope_type": "dynamic"}}, "rope type 'dynamic' is not supported"),
        ({"rope_scaling": {"type": "linear"}}, "rope type 'linear' needs factor"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "'llama3' needs low_freq_factor, high_freq_factor"),
        ({"rope_theta": "1e4"}, "rope's theta is '1e4'; it must be a number above 0"),
        ({"rope_theta": float("inf")}, "rope's theta is inf"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "rope's factor is 0"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5 is not supported"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not supported"),
        ({"mlp_bias": True}, "mlp_bias is not supported"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding window attention is not supported"),
        ({"use_sliding_window": True, "max_window_layers": 1}, "sliding window attention is not supported"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised with 'gptq' are not supported"),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3 KV heads"),
        ({"head_dim": 15}, "head_dim is 15"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers is '2'"),
        ({"num_attention_heads": "4"}, "a value in the config cannot be used"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LabError, match=message) as caught:
        ModelConfig.from_hf(LLAMA | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vocab_size", "num_attention_heads", "max_position_embeddings"])
def test_missing(name: str) -> None:
    with pytest.raises(LabError, match=f"the config has no '{name}'"):
        ModelConfig.from_hf({key: value for key, value in LLAMA.items() if key != name})


def test_sliding_window_that_is_not_in_use() -> None:
    ModelConfig.from_hf(LLAMA | {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 1})
    ModelConfig.from_hf(LLAMA | {"use_sliding_window": True, "max_window_layers": 2})
    ModelConfig.from_hf(LLAMA | {"layer_types": ["full_attention"] * 2})


OTHER_LLAMA3 = {"factor": 3.0, "low_freq_factor": 2.0, "high_freq_factor": 5.0, "original_max_position_embeddings": 900}
ROPES = [("default", {}), ("linear", {"factor": 2.5}), ("llama3", LLAMA3), ("llama3", OTHER_LLAMA3)]


@pytest.mark.parametrize(("rope_type", "settings"), ROPES, ids=str)
def test_frequencies(rope_type: str, settings: dict[str, float]) -> None:
    """Bit for bit those of transformers, from its old and its new spelling."""
    parameters = {"rope_type": rope_type, "rope_theta": 50000.0, **settings}
    theirs = LlamaConfig(hidden_size=512, num_attention_heads=4, rope_parameters=parameters)
    if rope_type == "default":
        expected, scale = LlamaRotaryEmbedding.compute_default_rope_parameters(theirs)
    else:
        expected, scale = ROPE_INIT_FUNCTIONS[rope_type](theirs)
    assert scale == 1.0
    old_type = "type" if rope_type == "linear" else "rope_type"  # older still
    old = {"rope_theta": 50000.0, "rope_scaling": {old_type: rope_type, **settings}}
    for raw in ({"rope_parameters": parameters}, old):
        assert torch.equal(RopeConfig.from_hf(raw).inverse_frequencies(128), expected)


def test_llama3_has_all_three_kinds() -> None:
    """Kept, blended and stretched frequencies all occur in what is tested above."""
    raw = {"rope_parameters": {"rope_type": "llama3", "rope_theta": 50000.0, **LLAMA3}}
    ratio = RopeConfig(theta=50000.0).inverse_frequencies(128) / RopeConfig.from_hf(raw).inverse_frequencies(128)
    assert (ratio == 1).any() and (ratio == 8).any() and ((ratio > 1) & (ratio < 8)).any()


def test_frequencies_by_hand() -> None:
    """`theta ** 0` and `theta ** -0.5`; a factor counts for the types that have one, divisors one by one."""
    assert RopeConfig("default", 1e8, factor=4.0).inverse_frequencies(4).tolist() == pytest.approx([1, 1e-4])
    assert RopeConfig("linear", 1e8, factor=4.0).inverse_frequencies(4).tolist() == pytest.approx([0.25, 2.5e-5])
    divided = RopeConfig("default", 1e8, divisors=(2.0, 5.0)).inverse_frequencies(4)
    assert divided.tolist() == pytest.approx([0.5, 2e-5])


@pytest.mark.parametrize(("trained", "ratio"), [(1648, 8), (1652, 8), (3304, 2.4), (6608, 1), (6612, 1)])
def test_llama3_at_its_edges(trained: int, ratio: float) -> None:
    """The second wave is 1652 tokens long: exactly the trained context it is stretched 8 times, a quarter of it not
    at all. In the middle, half of it, a third is kept: 1 / (2/3 / 8 + 1/3) = 2.4."""
    rope = RopeConfig("llama3", 69129.0, 8.0, original_max_position_embeddings=trained)
    kept = RopeConfig("default", 69129.0).inverse_frequencies(4)
    assert 2 * torch.pi / kept[1] == 1652
    assert (kept / rope.inverse_frequencies(4)).tolist() == pytest.approx([1, ratio])


def test_rope_defaults() -> None:
    with pytest.raises(FrozenInstanceError):
        RopeConfig().theta = 1.0  # type: ignore[misc]
    assert RopeConfig() == RopeConfig("default", 10000.0, 1.0, 1.0, 4.0, 8192, None)
    assert RopeConfig.from_hf({}) == RopeConfig("default", 10000.0)
    scaling = {"rope_type": "llama3", **LLAMA3, "original_max_position_embeddings": 8192}  # Llama 3.1's own
    assert RopeConfig.from_hf({"rope_theta": 5e5, "rope_scaling": scaling}) == RopeConfig("llama3", 5e5, 8.0)


def test_llama3_trained_length_defaults_to_the_position_limit() -> None:
    scaling = {"rope_type": "llama3", **LLAMA3}
    del scaling["original_max_position_embeddings"]
    rope = RopeConfig.from_hf({"max_position_embeddings": 300, "rope_scaling": scaling})
    assert rope.original_max_position_embeddings == 300


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_rotation(dtype: torch.dtype) -> None:
    """Bit for bit transformers' apply_rotary_pos_emb, at positions out of order and far out."""
    config = LlamaConfig(hidden_size=64, num_attention_heads=1, max_position_embeddings=200000)
    positions = torch.tensor([0, 1, 5, 4, 131071])
    q = torch.randn(5, 3, 64, dtype=torch.float64).to(dtype)
    cos, sin = LlamaRotaryEmbedding(config)(q, positions[None])
    expected, _ = apply_rotary_pos_emb(q[None], q[None], cos, sin, unsqueeze_dim=2)
    tables = rope_tables(positions, RopeConfig().inverse_frequencies(64), dtype)
    turned = q.clone()
    assert rotate_(turned, *tables) is turned
    assert torch.equal(turned, expected[0])


def test_tiny_models_follow_the_seed() -> None:
    for name, config in TINY.items():
        first, again, other = (random_weights(config, seed) for seed in (0, 0, 1))
        assert first.keys() == config.parameter_shapes().keys()
        assert all(torch.equal(first[key], again[key]) for key in first), name
        assert not any(torch.equal(first[key], other[key]) for key in first), name
    assert TINY["tiny-qwen2"].qkv_bias and TINY["tiny-qwen3"].qk_norm and TINY["tiny-llama3"].rope.rope_type == "llama3"


def test_a_decoder_in_another_dtype() -> None:
    decoder = Decoder(TINY["tiny"], random_weights(TINY["tiny"], 0))
    wide = decoder.to(torch.float64)
    assert (wide.dtype, decoder.dtype) == (torch.float64, torch.float32)
    assert wide.nbytes == 2 * decoder.nbytes
    assert torch.equal(wide.inv_freq, decoder.inv_freq)  # the angles are the model's, whatever its dtype


@pytest.mark.parametrize(
    ("name", "weight", "message"),
    [
        ("model.norm.weight", None, "1 weights are missing, first 'model.norm.weight'"),
        ("model.layers.9.mlp.up_proj.weight", torch.zeros(1), "1 weights are too many, first 'model.layers.9"),
        ("lm_head.weight", torch.zeros(3, 128), r"'lm_head.weight' has shape \(3, 128\) and the config makes it \(512"),
        ("model.norm.weight", torch.zeros(128, dtype=torch.float16), "the weights are of several dtypes"),
    ],
)
def test_wrong_weights(name: str, weight: torch.Tensor | None, message: str) -> None:
    weights = random_weights(TINY["tiny"], 0) | {name: weight}
    with pytest.raises(LabError, match=message):
        Decoder(TINY["tiny"], {key: value for key, value in weights.items() if value is not None})
