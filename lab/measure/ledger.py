"""The memory ledger: what a step needs, by part, computed from the configuration alone.

`step_moments` is a closed form: the moments of a step at which memory can be highest, and what is alive at each. It is
equal to what `PeakMemory` measures, byte for byte, on the CPU (`tests/measure/test_ledger.py`). With C tokens in the
step, T keys and values after it, d = hidden_size, f = intermediate_size, D = head_dim and e bytes an element, most
models need most in the SwiGLU, C * (2 d + 2 f + 2 D) * e: no T in it, which is why chunks save memory. T is in the
`math` backend, which holds its heads * C * T scores twice, and where a GPU's kernel wants KV heads repeated. Blocks are
consecutive, as those of a prompt that is alone are: attention copies others together first, which the form leaves out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lab.measure.memory import PeakMemory
from lab.model.attention import AttentionBackend, Sdpa
from lab.model.batch import Batch, Segment
from lab.model.config import ModelConfig
from lab.model.decoder import Decoder, is_few
from lab.model.kv_store import KVStore

CPU = torch.device("cpu")


def weight_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights; a tied output head counts once."""
    return sum(prod(shape) for shape in config.parameter_shapes().values()) * dtype.itemsize


def kv_bytes(config: ModelConfig, tokens: int, dtype: torch.dtype) -> int:
    """Bytes of the keys and values of `tokens` tokens in all layers. A pool holds num_blocks * block_size tokens."""
    return tokens * KVStore.bytes_per_token(config, dtype)


def logits_bytes(config: ModelConfig, rows: int, dtype: torch.dtype) -> int:
    """Bytes of the logits of `rows` rows: of the sampled ones, not of every token of the step."""
    return rows * config.vocab_size * dtype.itemsize


@dataclass(frozen=True)
class Step:
    """One step of one sequence: `num_tokens` new tokens, `kv_length` keys and values after it."""

    config: ModelConfig
    num_tokens: int
    kv_length: int
    dtype: torch.dtype
    attention: AttentionBackend
    device: torch.device = CPU
    block_size: int = 16
    sampled: bool = True  # are the logits of the last token wanted? not in a chunk before the last

    @property
    def num_blocks(self) -> int:
        return -(-self.kv_length // self.block_size)


@dataclass(frozen=True)
class Moment:
    """A point of the step at which memory can be highest, and the bytes alive there beside weights and KV cache."""

    name: str
    parts: Mapping[str, int]

    @property
    def nbytes(self) -> int:
        return sum(self.parts.values())


def prefill_steps(last: Step, chunk_size: int) -> list[Step]:
    """The steps of a prompt that is alone, cut into chunks: `last` is the step that would compute it whole."""
    ends = [*range(chunk_size, last.kv_length, chunk_size), last.kv_length]
    starts = [0, *ends[:-1]]
    return [
        replace(last, num_tokens=end - start, kv_length=end, sampled=last.sampled and end == last.kv_length)
        for start, end in zip(starts, ends, strict=True)
    ]


def step_peak(step: Step) -> Moment:
    """The moment of the step that needs most."""
    return max(step_moments(step), key=lambda moment: moment.nbytes)


def step_moments(step: Step) -> list[Moment]:
    """Every moment that can be the highest; what is left out is below one of these for any configuration."""
    config, n, e = step.config, step.num_tokens, step.dtype.itemsize
    hidden = n * config.hidden_size * e
    q, kv = (n * heads * config.head_dim * e for heads in (config.num_attention_heads, config.num_key_value_heads))
    rows = int(step.sampled)
    batch = {"batch": 8 * (3 * n + rows)}  # token ids, positions, slots; logit row
    layer = batch | {"residual": hidden, "rope": 2 * n * config.head_dim * e}  # alive throughout
    normed = {"norm output": hidden}

    moments = {
        "q, k, v": layer | normed | {"q, k, v": q + 2 * kv},
        "rotate k": layer | {"q, k, v": q + 2 * kv, "rotated half": kv},
        "o_proj": layer | {"q": q, "attention output": q * (2 if _is_strided(step) else 1), "o_proj": hidden},
        "norm": layer | {"norm": _norm(n, config.hidden_size, e)},
        "mlp": layer | normed | {"gate, up": 2 * n * config.intermediate_size * e},
        "logits": batch | normed | {"logits": rows * (hidden // n) + logits_bytes(config, rows, step.dtype)},
    }
    if config.qk_norm:
        heads, kv_heads, width = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        moments["norm of q"] = layer | normed | {"q, k, v": q, "norm": _norm(n * heads, width, e)}
        moments["norm of k"] = layer | normed | {"q, k, v": q + kv, "norm": _norm(n * kv_heads, width, e)}
    if n > 1 and not config.qkv_bias and is_few(n, step.dtype, step.device):  # the products are transposed, and copied
        moments["v"] = layer | normed | {"q, k, v": q + 3 * kv}
    if step.device.type == "cpu":  # on a GPU the host makes the batch in its own memory
        moments["build"] = {"batch": 8 * (4 * n + 1), "block table": 8 * step.num_blocks}
    for name, parts in _attention(step).items():
        moments[name] = layer | {"q": q} | parts
    return [Moment(name, parts) for name, parts in moments.items()]


def _norm(rows: int, width: int, itemsize: int) -> int:
    """RMSNorm: x and the product in float32 at least, a scale a row, and the result unless the product is it."""
    wide = max(itemsize, 4)
    return rows * (width * wide + wide) + (rows * width * (4 + itemsize) if itemsize < 4 else 0)


def mask_bytes(step: Step) -> int:
    """The causal mask, which `math` alone makes: at no peak, for it is gone when the softmax begins."""
    is_made = step.attention.name == "math" and step.num_tokens > 1
    return step.num_tokens * step.kv_length * step.dtype.itemsize if is_made else 0


def _is_strided(step: Step) -> bool:
    """Does the backend's output need a copy to be [T, heads * head_dim]?"""
    return step.attention.name == "math" and step.num_tokens > 1 and step.config.num_attention_heads > 1


def _attention(step: Step) -> dict[str, dict[str, int]]:
    """What the backend allocates while q is alive, by moment."""
    config, n, length, e = step.config, step.num_tokens, step.kv_length, step.dtype.itemsize
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    output = {"attention output": n * heads * config.head_dim * e}
    wide = max(e, 4)
    if step.attention.name != "math":
        workspace = n * heads * wide  # the softmax's log-sum-exp, a number a row
        if 1 < n < length and step.device.type == "cpu":  # attention to what came before, apart, and joined in float32
            widened = 2 * n * (heads // kv_heads) * config.head_dim * wide if e < 4 else 0  # of a KV head
            workspace = 2 * workspace + output["attention output"] + widened
        if isinstance(step.attention, Sdpa) and step.attention.expands_kv:  # but for a decode; this kernel gives no sum
            workspace = 2 * length * heads * config.head_dim * e if n > 1 else 0
        return {"attention": output | {"workspace": workspace}}
    scores = heads * n * length
    copied = n > 1 and kv_heads < heads  # rows of a group next to each other: no view of q
    fixed = {"grouped q": output["attention output"] if copied else 0, "scores": scores * e}
    return {
        "softmax": fixed | {"weights": scores * (e if e >= 4 else 2 * wide)},
        "attention": fixed | {"weights": scores * e} | output,
    }


def measure_step(step: Step) -> PeakMemory:
    """Run the step on tensors without data, so of any size anywhere, and measure what it allocates."""
    with FakeTensorMode(), torch.inference_mode():
        shapes = step.config.parameter_shapes()
        weights = {name: torch.empty(shape, dtype=step.dtype, device=step.device) for name, shape in shapes.items()}
        store = KVStore(step.config, step.num_blocks, step.block_size, dtype=step.dtype, device=step.device)
        return run_step(step, Decoder(step.config, weights), store)


def run_step(step: Step, decoder: Decoder, store: KVStore) -> PeakMemory:
    """Run the step, its tokens all 0, with a model and a pool that are there, and measure what it allocates."""
    start, table = step.kv_length - step.num_tokens, range(step.num_blocks)
    segment = Segment([0] * step.num_tokens, start, table, step.sampled)
    with (
        torch.inference_mode(),
        PeakMemory([*decoder.weights.values(), *store.keys, *store.values], step.device) as memory,
    ):
        batch = Batch.build([segment], step.block_size, step.device)
        hidden = decoder(batch.token_ids, batch.positions, store, batch, step.attention)
        decoder.logits(hidden[batch.logit_rows])
    return memory
