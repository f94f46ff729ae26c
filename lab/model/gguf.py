"""Weights as llama.cpp keeps them: one GGUF file, dequantised as it is read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor
from gguf.quants import dequantize
from torch import Tensor

from lab.model.config import ModelConfig
from lab.model.errors import ModelError

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
# llama.cpp's names and Hugging Face's; those of a layer come after `blk.N.` and `model.layers.N.`.
NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
EOS_FIELDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")  # end of text, end of a chat's turn
ROPE_DIVISORS = "rope_freqs.weight"  # how the converter writes the `llama3` type


def read_gguf(path: Path) -> tuple[ModelConfig, Iterator[tuple[str, Tensor]]]:
    """The config, and the weights one by one by their Hugging Face names, float32 on the CPU.

    Raises ModelError for a file that is truncated, no GGUF, or of a model that is not supported.
    """
    try:
        reader = GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items() if "tokenizer" not in name}
        fields |= {name: reader.fields[name].contents() for name in EOS_FIELDS if name in reader.fields}
    except Exception as error:  # the reader checks no bounds: what a damaged file raises depends on where it is damaged
        raise ModelError(f"the file is truncated or no GGUF ({error}); download it again") from None
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = _config(fields, tensors)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    return config, _weights(tensors, heads if fields["general.architecture"] == "llama" else {})


def _config(fields: dict[str, Any], tensors: dict[str, ReaderTensor]) -> ModelConfig:
    architecture = fields.get("general.architecture", "none")
    prefix = f"{architecture}."
    own = {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}
    embedding = tensors.get("token_embd.weight")
    raw = {
        "architectures": [ARCHITECTURES.get(architecture, architecture)],
        "vocab_size": None if embedding is None else int(embedding.shape[-1]),
        "hidden_size": own.get("embedding_length"),
        "intermediate_size": own.get("feed_forward_length"),
        "num_hidden_layers": own.get("block_count"),
        "num_attention_heads": own.get("attention.head_count"),
        "num_key_value_heads": own.get("attention.head_count_kv"),
        "head_dim": own.get("attention.key_length"),
        "max_position_embeddings": own.get("context_length"),
        "rms_norm_eps": own.get("attention.layer_norm_rms_epsilon"),
        "rope_theta": own.get("rope.freq_base"),
        "tie_word_embeddings": "output.weight" not in tensors,
        "attention_bias": architecture != "qwen2" and "blk.0.attn_q.bias" in tensors,
        "use_sliding_window": own.get("attention.sliding_window"),
        "eos_token_id": [fields[name] for name in EOS_FIELDS if name in fields],
    }
    scaling = own.get("rope.scaling.type", "none")
    if scaling != "none":
        factor = {"factor": own["rope.scaling.factor"]} if "rope.scaling.factor" in own else {}
        raw["rope_scaling"] = {"rope_type": scaling, **factor}
    config = ModelConfig.from_hf({name: value for name, value in raw.items() if value is not None})
    rotated = own.get("rope.dimension_count", config.head_dim)
    if rotated != config.head_dim:
        raise ModelError(f"rope.dimension_count {rotated} is not supported; only whole heads, {config.head_dim}, are")
    if ROPE_DIVISORS in tensors:
        divisors = tuple(_tensor(tensors[ROPE_DIVISORS]).tolist())
        config = replace(config, rope=replace(config.rope, divisors=divisors))
    return config


def _weights(tensors: dict[str, ReaderTensor], permuted_heads: dict[str, int]) -> Iterator[tuple[str, Tensor]]:
    for name, stored in tensors.items():
        if name == ROPE_DIVISORS:
            continue
        tensor = _tensor(stored)
        heads = permuted_heads.get(name.rpartition(".")[0].rpartition(".")[2])
        if heads is not None and len(tensor) % (2 * heads) == 0:  # of another shape it is not the config's anyway
            tensor = _unpermute(tensor, heads)
        yield _hugging_face_name(name), tensor


def _tensor(stored: ReaderTensor) -> Tensor:
    try:
        values = dequantize(stored.data, stored.tensor_type)
    except NotImplementedError:
        raise ModelError(f"{stored.name} is quantised as {stored.tensor_type.name}, which gguf cannot read") from None
    return torch.from_numpy(np.require(values, np.float32, "W"))


def _unpermute(tensor: Tensor, heads: int) -> Tensor:
    """Undo the order in which llama.cpp keeps the rows of a Llama's q and k.

    Its rope turns neighbours, dimension 2i with 2i + 1; Hugging Face's turns i with i + head_dim / 2. The converter
    interleaves the halves of each head (llama.cpp, `convert_hf_to_gguf.py`, `permute`).
    """
    return tensor.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def _hugging_face_name(name: str) -> str:
    """What has no name there keeps its own, and the decoder will say that it knows no such weight."""
    stem, _, kind = name.rpartition(".")
    if stem.startswith("blk.") and stem.count(".") >= 2:
        _, layer, part = stem.split(".", 2)
        return f"model.layers.{layer}.{LAYER_NAMES.get(part, part)}.{kind}"
    return f"{NAMES.get(stem, stem)}.{kind}"
