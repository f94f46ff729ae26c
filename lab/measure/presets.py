"""Models by name for questions that need no weights: the numbers of their `config.json` on huggingface.co."""

import json
from dataclasses import replace
from pathlib import Path

from lab.model.config import ModelConfig
from lab.model.errors import ModelError
from lab.model.rope import RopeConfig
from lab.model.tiny import TINY

_LLAMA_3_8B = ModelConfig(  # meta-llama/Meta-Llama-3-8B
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=8192,
    rope=RopeConfig(theta=500000.0),
)
_QWEN3_8B = ModelConfig(  # Qwen/Qwen3-8B
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=12288,
    num_hidden_layers=36,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=40960,
    rope=RopeConfig(theta=1000000.0),
    qk_norm=True,
)
PRESETS = TINY | {
    "smollm2-135m": ModelConfig(  # HuggingFaceTB/SmolLM2-135M-Instruct
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        head_dim=64,
        max_position_embeddings=8192,
        rope=RopeConfig(theta=100000.0),
        tie_word_embeddings=True,
    ),
    "qwen3-0.6b": replace(  # Qwen/Qwen3-0.6B
        _QWEN3_8B,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        tie_word_embeddings=True,
    ),
    "qwen3-8b": _QWEN3_8B,
    "llama-3-8b": _LLAMA_3_8B,
    "llama-3.1-8b": replace(  # meta-llama/Llama-3.1-8B
        _LLAMA_3_8B,
        max_position_embeddings=131072,
        rope=RopeConfig("llama3", 500000.0, 8.0, original_max_position_embeddings=8192),
    ),
    "llama-3-70b": replace(  # meta-llama/Meta-Llama-3-70B
        _LLAMA_3_8B,
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
    ),
}


def find_config(spec: str) -> ModelConfig:
    """The configuration called `spec`: a name of `PRESETS`, a `config.json`, or a directory that holds one.

    Raises ModelError, in one line that begins with `spec`, for what is not there, no JSON, or not supported.
    """
    if spec in PRESETS:
        return PRESETS[spec]
    try:
        path = Path(spec)
        raw = json.loads((path / "config.json" if path.is_dir() else path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{spec}: no such model; give a config.json, its directory, or {', '.join(PRESETS)}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{spec}: its config cannot be read as JSON ({error}); give a model's own") from None
    if not isinstance(raw, dict):
        raise ModelError(f"{spec}: its config is a {type(raw).__name__}, not an object; give a model's own config.json")
    try:
        return ModelConfig.from_hf(raw)
    except ModelError as error:
        raise ModelError(f"{spec}: {error}") from None
