"""GGUF files written here with the gguf package, after llama.cpp's converter, and read back; damaged ones too."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from lab.core.errors import LabError
from lab.model.config import ModelConfig
from lab.model.tiny import TINY, random_weights
from lab.model.weights import load_model

ARCHITECTURES = {
    "tiny": ("llama", gguf.MODEL_ARCH.LLAMA),
    "tiny-llama3": ("llama", gguf.MODEL_ARCH.LLAMA),
    "tiny-qwen2": ("qwen2", gguf.MODEL_ARCH.QWEN2),
    "tiny-qwen3": ("qwen3", gguf.MODEL_ARCH.QWEN3),
}


def permute(weight: np.ndarray, heads: int) -> np.ndarray:
    """The order of rows that llama.cpp's converter gives q and k of a Llama."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write(path: Path, name: str, kind: Kind = Kind.F32, **changes: Any) -> Path:
    """Write the tiny model `name`; `changes` set or (None) leave out fields."""
    config: ModelConfig = TINY[name]
    architecture, model_arch = ARCHITECTURES[name]
    names = gguf.get_tensor_name_map(model_arch, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, changes.pop("architecture", architecture))
    fields = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "rope.dimension_count": config.head_dim,
    } | changes
    for field, value in fields.items():
        if isinstance(value, str):
            writer.add_string(f"{architecture}.{field}", value)
        elif value is not None:
            writer.add_uint32(f"{architecture}.{field}", value)
    writer.add_float32(f"{architecture}.rope.freq_base", config.rope.theta)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", config.rms_norm_eps)
    writer.add_uint32("tokenizer.ggml.eos_token_id", 2)
    writer.add_uint32("tokenizer.ggml.eot_token_id", 5)
    for key, weight in random_weights(config, 0).items():
        array = weight.numpy()
        if architecture == "llama" and ".q_proj" in key:
            array = permute(array, config.num_attention_heads)
        if architecture == "llama" and ".k_proj" in key:
            array = permute(array, config.num_key_value_heads)
        stored = Kind.F32 if array.ndim == 1 else kind
        tensor_name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert tensor_name is not None
        writer.add_tensor(tensor_name, gguf.quants.quantize(array, stored), raw_dtype=stored)
    if config.rope.rope_type == "llama3":
        plain = 1.0 / config.rope.theta ** (torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim)
        writer.add_tensor("rope_freqs.weight", (plain / config.rope.inverse_frequencies(config.head_dim)).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(path: Path):
    return load_model(str(path), dtype="float32", device="cpu")


def refusal(path: Path) -> str:
    with pytest.raises(LabError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", TINY)
def test_every_family(tmp_path: Path, name: str) -> None:
    model = load(write(tmp_path / "some-model.gguf", name))
    decoder, config = model.decoder, TINY[name]
    assert model.name == "some-model"
    for key, weight in random_weights(config, 0).items():
        assert torch.equal(decoder.weights[key], weight), key
    assert decoder.config.eos_token_ids == {2, 5}
    for field in ("vocab_size", "num_key_value_heads", "head_dim", "max_position_embeddings", "qkv_bias", "qk_norm"):
        assert getattr(decoder.config, field) == getattr(config, field)
    assert decoder.config.rms_norm_eps == pytest.approx(config.rms_norm_eps, rel=1e-6)
    expected = config.rope.inverse_frequencies(config.head_dim)
    assert torch.allclose(decoder.inv_freq, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_1])
def test_quantised(tmp_path: Path, kind: Kind) -> None:
    """Dequantised with the gguf package, in the file's own order of rows, then put in Hugging Face's."""
    decoder = load(write(tmp_path / "m.gguf", "tiny", kind)).decoder
    for key, weight in random_weights(TINY["tiny"], 0).items():
        error = (decoder.weights[key] - weight).abs().max() / weight.abs().max()
        assert error < {Kind.F16: 1e-3, Kind.BF16: 4e-3, Kind.Q8_0: 1e-2, Kind.Q4_1: 0.1}[kind], key
        assert (error == 0) == (weight.ndim == 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "phi3"}, "architecture 'phi3' is not supported"),
        ({"embedding_length": None}, "the config has no 'hidden_size'"),
        ({"attention.head_count": None}, "the config has no 'num_attention_heads'"),
        ({"rope.dimension_count": 16}, "rope.dimension_count 16 is not supported; only whole heads, 32, are"),
        ({"rope.scaling.type": "yarn"}, "rope type 'yarn' is not supported"),
        ({"rope.scaling.type": "linear"}, "rope type 'linear' needs factor"),
        ({"attention.sliding_window": 512}, "sliding window attention is not supported"),
        ({"feed_forward_length": 300}, "has shape (256, 128) and the config makes it (300, 128)"),
        ({"attention.head_count": 3, "attention.head_count_kv": 1}, "has shape (128, 128) and the config"),
        ({"block_count": 5}, "9 weights are missing, first 'model.layers.4.input_layernorm.weight'"),
        ({"block_count": 3}, "9 weights are too many, first 'model.layers.3.input_layernorm.weight'"),
    ],
)
def test_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert message in refusal(write(tmp_path / "m.gguf", "tiny", **changes))


def test_linear_rope(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "tiny", **{"rope.scaling.type": "linear", "rope.scaling.factor": 4})
    expected = TINY["tiny"].rope.inverse_frequencies(32) / 4
    assert torch.allclose(load(path).decoder.inv_freq, expected, rtol=1e-6, atol=0)


def test_without_key_length_heads_divide_the_width(tmp_path: Path) -> None:
    assert load(write(tmp_path / "m.gguf", "tiny", **{"attention.key_length": None})).decoder.config.head_dim == 32


def test_a_file_with_nothing_of_a_model(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "the config has no " in refusal(tmp_path / "m.gguf")


def test_truncated_anywhere(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", "tiny")
    content = path.read_bytes()
    header = content.index(b"blk.0.attn_q.weight")
    for kept in [0, 3, 4, 7, 8, 20, 24, 25, 40, 100, header, header + 30, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:kept])
        assert "the file is truncated or no GGUF" in refusal(path), kept


def test_not_a_gguf(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\x80\x04pickle" * 100)
    assert "the file is truncated or no GGUF (GGUF magic invalid)" in refusal(tmp_path / "weights.bin")
