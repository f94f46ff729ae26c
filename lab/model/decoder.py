"""The decoder: token ids in, hidden states out, keys and values into the cache on the way.

Every operation is in the order of transformers' own `modeling_llama.py`, so that a whole prefill is equal to it bit for
bit. What is done in place changes no bit; it keeps the transient peak of a step at
`T * (2 * hidden_size + 2 * intermediate_size)` elements, reached in the SwiGLU, beside what the step shares.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from lab.model.attention import AttentionBackend
from lab.model.batch import Batch
from lab.model.config import ModelConfig
from lab.model.errors import ModelError
from lab.model.kv_store import KVStore
from lab.model.rope import Rope, rope_tables, rotate_

FEW_ROWS = 32
EMBEDDING = "model.embed_tokens.weight"


class Decoder:
    """A decoder of the Llama family with weights by their Hugging Face names, all of one dtype on one device.

    Raises ModelError, naming the first, for weights that are missing, of a wrong shape or not the model's.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        check_weights(config, weights)
        self.config = config
        self.weights = dict(weights)
        self.embedding = weights[EMBEDDING]
        self.norm = weights["model.norm.weight"]
        self.lm_head = weights[EMBEDDING if config.tie_word_embeddings else "lm_head.weight"]
        self.layers: list[dict[str, Tensor]] = [{} for _ in range(config.num_hidden_layers)]
        for name, weight in weights.items():
            if name.startswith("model.layers."):
                index, rest = name.removeprefix("model.layers.").split(".", 1)
                self.layers[int(index)][rest] = weight
        self.inv_freq = config.rope.inverse_frequencies(config.head_dim).to(self.device)

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        return sum(weight.nbytes for weight in self.weights.values())

    def to(self, dtype: torch.dtype | None = None, device: torch.device | None = None) -> "Decoder":
        """The same model in another dtype or on another device."""
        return Decoder(self.config, {name: weight.to(device, dtype) for name, weight in self.weights.items()})

    def __call__(
        self, token_ids: Tensor, positions: Tensor, store: KVStore, batch: Batch, attention: AttentionBackend
    ) -> Tensor:
        """Hidden states `[T, hidden_size]` after the last norm, from `token_ids` and `positions`, int64 `[T]`.

        Writes the T keys and values to `batch.slots`; each row sees the KV of its own sequence up to itself.
        """
        hidden = F.embedding(token_ids, self.embedding)
        rope = rope_tables(positions, self.inv_freq, self.dtype)
        for i, layer in enumerate(self.layers):
            hidden.add_(self._attention(hidden, i, rope, store, batch, attention))
            hidden.add_(self._mlp(hidden, layer))
        return self._rms_norm(hidden, self.norm)

    def logits(self, hidden: Tensor) -> Tensor:
        """`[S, vocab_size]` from the rows of hidden that are wanted, `[S, hidden_size]`."""
        return linear(hidden, self.lm_head)

    def _attention(
        self, hidden: Tensor, index: int, rope: Rope, store: KVStore, batch: Batch, attention: AttentionBackend
    ) -> Tensor:
        layer = self.layers[index]
        x = self._rms_norm(hidden, layer["input_layernorm.weight"])
        q, k, v = (self._heads(x, layer, name) for name in ("q", "k", "v"))
        del x
        store.write(index, batch.slots, rotate_(k, *rope), v)
        del k, v  # from here on they are read from the cache
        out = attention(rotate_(q, *rope), store, index, batch)
        return linear(out.flatten(1), layer["self_attn.o_proj.weight"], layer.get("self_attn.o_proj.bias"))

    def _heads(self, x: Tensor, layer: dict[str, Tensor], name: str) -> Tensor:
        """`[T, heads, head_dim]` of q, k or v ; Qwen2 adds a bias, Qwen3 norms each head of q and k."""
        out = linear(x, layer[f"self_attn.{name}_proj.weight"], layer.get(f"self_attn.{name}_proj.bias"))
        out = out.contiguous().view(len(x), -1, self.config.head_dim)  # attention wants a head's numbers in a row
        norm = layer.get(f"self_attn.{name}_norm.weight")
        return out if norm is None else self._rms_norm(out, norm)

    def _mlp(self, hidden: Tensor, layer: dict[str, Tensor]) -> Tensor:
        x = self._rms_norm(hidden, layer["post_attention_layernorm.weight"])
        gate = F.silu(linear(x, layer["mlp.gate_proj.weight"]), inplace=True)
        gate.mul_(linear(x, layer["mlp.up_proj.weight"]))
        del x
        return linear(gate, layer["mlp.down_proj.weight"])

    def _rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """RMSNorm (arXiv 1910.07467) over the last dimension: in float32 at least, the weight applied in x's dtype."""
        wide = x if x.dtype == torch.float64 else x.float()
        scale = wide.pow(2).mean(-1, keepdim=True).add_(self.config.rms_norm_eps).rsqrt_()
        return (wide * scale).to(x.dtype).mul_(weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight.T + bias`, `[T, out]` from `[T, in]` and `[out, in]`.

    On a Xeon with AMX oneDNN lays out its right operand anew at each call, which for the few rows of a decode takes
    longer than to multiply: there the weight stands on the left, and the result is a view whose columns are
    consecutive. Where bfloat16 is emulated there is little to gain, and two rows take longer.
    """
    if bias is not None or not is_few(len(x), x.dtype, x.device):
        return F.linear(x, weight, bias)
    return torch.mv(weight, x[0])[None] if len(x) == 1 else torch.mm(weight, x.t()).t()


def is_few(rows: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Does the weight stand on the left? Up to so many rows both ways have the same bits (Xeon with AMX)."""
    return rows <= FEW_ROWS and dtype == torch.bfloat16 and device.type == "cpu"


def check_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
    """Raise ModelError unless `weights` are those of `config`: the names, the shapes, one dtype, one device."""
    shapes = config.parameter_shapes()
    missing, extra = shapes.keys() - weights.keys(), weights.keys() - shapes.keys()
    for what, names in (("missing", missing), ("too many", extra)):
        if names:
            raise ModelError(
                f"{len(names)} weights are {what}, first {min(names)!r}; the config makes {len(shapes)}; "
                "get the files that belong to this config"
            )
    for name, shape in shapes.items():
        if tuple(weights[name].shape) != shape:
            raise ModelError(f"weight {name!r} has shape {tuple(weights[name].shape)} and the config makes it {shape}")
    if len({(weight.dtype, weight.device) for weight in weights.values()}) > 1:
        raise ModelError("the weights are of several dtypes or on several devices; convert them to one")
