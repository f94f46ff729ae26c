"""One set of random weights: transformers' model and ours, which share the tensors, and files for the others."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import torch
from torch import Tensor
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
    "max_position_embeddings": 8704,  # the longest prompt, and a token after it
}
TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 192,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
}


@dataclass(frozen=True)
class Pair:
    """The same model twice."""

    theirs: LlamaForCausalLM
    ours: LoadedModel

    def prompt(self, num_tokens: int, seed: int = 0) -> list[int]:
        """Random tokens."""
        return random.Random(seed).choices(range(self.ours.decoder.config.vocab_size), k=num_tokens)


def llama(dtype: torch.dtype, device: torch.device, **sizes: int) -> Pair:
    """The model of `LLAMA` with transformers' own initialisation, always the same; `sizes` override its sizes."""
    torch.manual_seed(0)
    names = {"architectures": ["LlamaForCausalLM"], "bos_token_id": None, "eos_token_id": None}
    config = LlamaConfig(**{**LLAMA, **names, **sizes})
    theirs = AutoModelForCausalLM.from_config(config, dtype=dtype).eval().to(device)
    decoder = Decoder(ModelConfig.from_hf(config.to_dict()), theirs.state_dict())
    return Pair(theirs, LoadedModel(decoder, "llama-124.7m", "random weights, seed 0"))


def write_gguf(pair: Pair, path: Path) -> Path:
    """The same weights as llama.cpp reads them, in their dtype; norms in float32, as its converter writes them."""
    decoder = pair.ours.decoder
    config = decoder.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    kind = gguf.GGMLQuantizationType.BF16 if decoder.dtype == torch.bfloat16 else gguf.GGMLQuantizationType.F32
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope.theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    for name, weight in decoder.weights.items():
        if ".q_proj" in name:
            weight = _interleaved(weight, config.num_attention_heads)
        if ".k_proj" in name:
            weight = _interleaved(weight, config.num_key_value_heads)
        stored = gguf.GGMLQuantizationType.F32 if weight.ndim == 1 else kind
        array = gguf.quants.quantize(weight.float().numpy(), stored)
        theirs = names.get_name(name, try_suffixes=(".weight",))
        assert theirs is not None, f"{name} is no tensor of a Llama"
        writer.add_tensor(theirs, array, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _interleaved(weight: Tensor, heads: int) -> Tensor:
    """The rows of q or k in llama.cpp's order: the halves of a head, which rope turns together, row by row."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)
