"""The work of a step in closed form: operations, and bytes that must come from memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import torch

from lab.measure.ledger import kv_bytes, weight_bytes
from lab.model.config import ModelConfig
from lab.model.decoder import EMBEDDING


@dataclass(frozen=True)
class Piece:
    """A sequence's share of a step: `num_tokens` new tokens, `kv_length` keys and values after it."""

    num_tokens: int
    kv_length: int
    sampled: bool = True  # are logits of its last token computed?

    @property
    def seen(self) -> int:
        """Query-key pairs that the causal mask lets through."""
        n, start = self.num_tokens, self.kv_length - self.num_tokens
        return n * start + n * (n + 1) // 2


@dataclass(frozen=True)
class Work:
    """Of one step. A product of `[m, k]` and `[k, n]` is 2 m k n operations, as `torch.utils.flop_counter` has it."""

    tokens: int
    matmul_flops: int  # of the projections and the MLP: 2 a weight and token
    attention_flops: int  # 4 head_dim a head and query-key pair, of the pairs the mask lets through
    logits_flops: int
    weight_bytes: int  # read once a step, whatever the number of tokens
    kv_tokens: int  # tokens whose keys and values are read
    kv_bytes: int  # read, and those of the new tokens written

    @property
    def flops(self) -> int:
        return self.matmul_flops + self.attention_flops + self.logits_flops

    @property
    def nbytes(self) -> int:
        """The least a step moves: what is computed on its way may stay in a cache, weights and KV must come."""
        return self.weight_bytes + self.kv_bytes

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.nbytes


def step_work(config: ModelConfig, pieces: Iterable[Piece], dtype: torch.dtype) -> Work:
    """The work of a step made of these pieces."""
    pieces = list(pieces)
    tokens = sum(piece.num_tokens for piece in pieces)
    rows = sum(piece.sampled for piece in pieces)
    contexts = sum(piece.kv_length for piece in pieces)
    head = config.vocab_size * config.hidden_size
    pair = 4 * config.num_hidden_layers * config.num_attention_heads * config.head_dim
    unread = head * ((not config.tie_word_embeddings) + (not rows)) * dtype.itemsize  # the embedding; the output head
    return Work(
        tokens,
        matmul_flops=2 * _matmul_weights(config) * tokens,
        attention_flops=pair * sum(piece.seen for piece in pieces),
        logits_flops=2 * head * rows,
        weight_bytes=weight_bytes(config, dtype) - unread,
        kv_tokens=contexts,
        kv_bytes=kv_bytes(config, contexts + tokens, dtype),
    )


def prefill_pieces(length: int, chunk_size: int) -> list[Piece]:
    """The steps of a prompt that is alone, cut into chunks."""
    ends = [*range(chunk_size, length, chunk_size), length]
    return [Piece(end - start, end, end == length) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _matmul_weights(config: ModelConfig) -> int:
    """Weights that each token is multiplied with: the matrices but for embedding and output head."""
    shapes = config.parameter_shapes()
    return sum(prod(s) for name, s in shapes.items() if len(s) == 2 and name not in (EMBEDDING, "lm_head.weight"))
