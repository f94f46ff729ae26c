"""One set of random weights, as transformers' model and as ours. The tensors are shared, not copied."""

import random
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from lab.model.config import ModelConfig
from lab.model.decoder import Decoder
from lab.model.weights import LoadedModel

# 124.7 million parameters: large enough that matrix products, not Python, take the time; small enough for any machine.
LLAMA: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "max_position_embeddings": 8192,
}
TINY = {"num_hidden_layers": 2, "hidden_size": 96, "intermediate_size": 256, "vocab_size": 512}


@dataclass(frozen=True)
class Pair:
    """The same model twice."""

    theirs: LlamaForCausalLM
    ours: LoadedModel

    @property
    def is_exact(self) -> bool:
        """In float32 both must choose the same tokens; in bfloat16 two logits may round to a tie."""
        return self.ours.decoder.dtype == torch.float32

    def prompt(self, num_tokens: int, seed: int = 0) -> list[int]:
        """Random tokens."""
        return random.Random(seed).choices(range(self.ours.decoder.config.vocab_size), k=num_tokens)


def llama(dtype: torch.dtype, **sizes: int) -> Pair:
    """The model of `LLAMA` with transformers' own initialisation, always the same; `sizes` override its sizes."""
    torch.manual_seed(0)
    names = {"architectures": ["LlamaForCausalLM"], "bos_token_id": None, "eos_token_id": None}
    config = LlamaConfig(**{**LLAMA, **names, **sizes})
    theirs = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    decoder = Decoder(ModelConfig.from_hf(config.to_dict()), theirs.state_dict())
    return Pair(theirs, LoadedModel(decoder, "llama-124.7m", "random weights, seed 0"))
