"""What a model is made of. Names are those of Hugging Face's `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.model.errors import ModelError
from lab.model.rope import RopeConfig

MAX_LAYERS = 10_000  # a damaged file may say 10^9: naming their weights would never end
ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True)
class ModelConfig:
    """A decoder of the Llama family: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

    Raises ModelError for sizes that make no model.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-6
    rope: RopeConfig = field(default_factory=RopeConfig)
    tie_word_embeddings: bool = False
    qkv_bias: bool = False  # Qwen2
    o_bias: bool = False
    qk_norm: bool = False  # Qwen3: RMSNorm over each head of q and k
    eos_token_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                     "num_key_value_heads", "head_dim", "max_position_embeddings"):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ModelError(f"{name} is {value!r}; it must be an integer of at least 1")
        if not isinstance(self.rms_norm_eps, (int, float)) or not 0 <= self.rms_norm_eps < 1:
            raise ModelError(f"rms_norm_eps is {self.rms_norm_eps!r}; it must be a number from 0 to 1")
        if not all(isinstance(token, int) for token in self.eos_token_ids):
            raise ModelError(f"eos_token_id is {sorted(self.eos_token_ids, key=str)}; it must be integers")
        if self.num_hidden_layers > MAX_LAYERS:
            raise ModelError(f"num_hidden_layers is {self.num_hidden_layers}; no model has more than {MAX_LAYERS}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ModelError(
                f"{self.num_attention_heads} attention heads cannot share {self.num_key_value_heads} KV heads evenly; "
                "num_attention_heads must be a multiple of num_key_value_heads"
            )
        if self.head_dim % 2:
            raise ModelError(f"head_dim is {self.head_dim}; rotary positions turn pairs, so it must be even")

    @classmethod
    def from_hf(cls, raw: Mapping[str, Any]) -> "ModelConfig":
        """From a parsed `config.json`. Raises ModelError, naming it, for what is missing or not supported."""
        named = raw.get("architectures") or ["none"]
        architecture = named[0] if isinstance(named, list) else named
        if architecture not in ARCHITECTURES:
            raise ModelError(f"architecture {architecture!r} is not supported; there is {', '.join(ARCHITECTURES)}")
        try:
            _refuse_unsupported(raw)
            heads, hidden_size = raw["num_attention_heads"], raw["hidden_size"]
            default_head_dim = 128 if architecture == "Qwen3ForCausalLM" else hidden_size // heads
            attention_bias = bool(raw.get("attention_bias"))
            return cls(
                vocab_size=raw["vocab_size"],
                hidden_size=hidden_size,
                intermediate_size=raw["intermediate_size"],
                num_hidden_layers=raw["num_hidden_layers"],
                num_attention_heads=heads,
                num_key_value_heads=raw.get("num_key_value_heads") or heads,
                head_dim=raw.get("head_dim") or default_head_dim,
                max_position_embeddings=raw["max_position_embeddings"],
                rms_norm_eps=raw.get("rms_norm_eps", 1e-6),
                rope=RopeConfig.from_hf(raw),
                tie_word_embeddings=bool(raw.get("tie_word_embeddings", False)),
                qkv_bias=attention_bias or architecture == "Qwen2ForCausalLM",
                o_bias=attention_bias and architecture != "Qwen2ForCausalLM",
                qk_norm=architecture == "Qwen3ForCausalLM",
                eos_token_ids=token_id_set(raw.get("eos_token_id")),
            )
        except ModelError:  # says itself what is wrong
            raise
        except KeyError as error:
            raise ModelError(f"the config has no {error.args[0]!r}, which {architecture} needs") from None
        except (AttributeError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ModelError(f"a value in the config cannot be used ({error}); get the model's own config") from None

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight by its Hugging Face name. A tied output head is not a weight of its own."""
        d, d_ff = self.hidden_size, self.intermediate_size
        q, kv = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (d,),
            "self_attn.q_proj.weight": (q, d),
            "self_attn.k_proj.weight": (kv, d),
            "self_attn.v_proj.weight": (kv, d),
            "self_attn.o_proj.weight": (d, q),
            "post_attention_layernorm.weight": (d,),
            "mlp.gate_proj.weight": (d_ff, d),
            "mlp.up_proj.weight": (d_ff, d),
            "mlp.down_proj.weight": (d, d_ff),
        }
        if self.qkv_bias:
            layer |= {"self_attn.q_proj.bias": (q,), "self_attn.k_proj.bias": (kv,), "self_attn.v_proj.bias": (kv,)}
        if self.o_bias:
            layer["self_attn.o_proj.bias"] = (d,)
        if self.qk_norm:
            layer |= {"self_attn.q_norm.weight": (self.head_dim,), "self_attn.k_norm.weight": (self.head_dim,)}
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab_size, d)}
        for i in range(self.num_hidden_layers):
            shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
        shapes["model.norm.weight"] = (d,)
        if not self.tie_word_embeddings:
            shapes["lm_head.weight"] = (self.vocab_size, d)
        return shapes


def token_id_set(value: int | list[int] | None) -> frozenset[int]:
    """`eos_token_id` as config files write it: one id, several, or none."""
    return frozenset() if value is None else frozenset([value] if isinstance(value, int) else value)


def _refuse_unsupported(raw: Mapping[str, Any]) -> None:
    if raw.get("hidden_act", "silu") != "silu":
        raise ModelError(f"hidden_act {raw['hidden_act']!r} is not supported; only 'silu' is")
    if raw.get("quantization_config"):
        method = raw["quantization_config"].get("quant_method")
        raise ModelError(f"weights quantised with {method!r} are not supported; use a GGUF file or plain weights")
    if raw.get("mlp_bias"):
        raise ModelError("mlp_bias is not supported; use a model without it")
    layer_types = raw.get("layer_types") or []
    windowed = raw.get("use_sliding_window") and raw.get("max_window_layers", 0) < raw.get("num_hidden_layers", 0)
    if windowed or any(kind != "full_attention" for kind in layer_types):
        raise ModelError("sliding window attention is not supported; use a model whose layers attend to everything")
