"""Models of half a million random weights, one of each family: they load at once and need no download."""

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from lab.model.config import ModelConfig
from lab.model.rope import RopeConfig

_LLAMA = ModelConfig(
    vocab_size=512,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    max_position_embeddings=4096,
)
TINY = {
    "tiny": _LLAMA,
    "tiny-llama3": replace(_LLAMA, rope=RopeConfig("llama3", 500000.0, 8.0, original_max_position_embeddings=64)),
    "tiny-qwen2": replace(_LLAMA, qkv_bias=True, rope=RopeConfig(theta=1000000.0)),
    "tiny-qwen3": replace(_LLAMA, qk_norm=True, head_dim=64, rope=RopeConfig(theta=1000000.0)),
}


class ByteTokenizer:
    """Text as its UTF-8 bytes: ids 0 to 255. The ids above have no text."""

    chat_template = None

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        return bytes(id for id in token_ids if id < 256).decode(errors="replace")


def random_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """float32 weights on the CPU, the same for the same seed.

    Scaled so that activations keep a size of about 1 through every matrix: attention is then far from uniform, and a
    mistake in a mask or a position shows in the logits.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in config.parameter_shapes().items():
        noise = torch.randn(shape, generator=generator)
        if name.endswith("norm.weight"):
            weights[name] = 1 + 0.1 * noise
        elif name.endswith("bias"):
            weights[name] = 0.1 * noise
        elif name == "model.embed_tokens.weight":
            weights[name] = noise
        else:
            weights[name] = noise / shape[1] ** 0.5
    return weights
