"""Steps of a decoder to be timed: the model's part of what the engine does, and nothing of the scheduler's."""

from collections.abc import Callable, Sequence

import torch

from lab.measure.work import Piece
from lab.model.attention import AttentionBackend, select_backend
from lab.model.batch import Batch, Segment
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore

BLOCK_SIZE = 16  # tokens of a KV block, wherever a measurement is told no other


def backend_of(decoder: Decoder, requested: str | None = None, block_size: int = BLOCK_SIZE) -> AttentionBackend:
    """What `select_backend` says for a decoder as it stands: its config, device and dtype. Raises ModelError."""
    return select_backend(requested, decoder.config, decoder.device, decoder.dtype, block_size).backend


class StepRunner:
    """Runs steps of a decoder over a KV cache of its own, `num_tokens` tokens in blocks that are consecutive.

    What was not computed before is zero: the time does not depend on it, and neither does what is launched.
    """

    def __init__(
        self,
        decoder: Decoder,
        attention: AttentionBackend,
        num_tokens: int,
        num_sequences: int = 1,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self.decoder = decoder
        self.attention = attention
        self.blocks = -(-num_tokens // block_size)  # of each sequence
        pool = self.blocks * num_sequences
        self.store = KVStore(decoder.config, pool, block_size, dtype=decoder.dtype, device=decoder.device)

    def step(self, pieces: Sequence[Piece]) -> Callable[[], None]:
        """A call that runs one step; piece i is a sequence of its own."""
        vocab, blocks = self.decoder.config.vocab_size, self.blocks
        segments = [
            Segment(
                [token % vocab for token in range(piece.kv_length - piece.num_tokens, piece.kv_length)],
                piece.kv_length - piece.num_tokens,
                range(i * blocks, (i + 1) * blocks),
                piece.sampled,
            )
            for i, piece in enumerate(pieces)
        ]
        return lambda: self._run(segments)

    def prefill(self, pieces: Sequence[Piece]) -> Callable[[], None]:
        """A call that runs a sequence's pieces one after the other."""
        steps = [self.step([piece]) for piece in pieces]

        def run() -> None:
            for step in steps:
                step()

        return run

    @torch.inference_mode()
    def _run(self, segments: Sequence[Segment]) -> None:
        batch = Batch.build(segments, self.store.block_size, self.decoder.device)
        hidden = self.decoder(batch.token_ids, batch.positions, self.store, batch, self.attention)
        self.decoder.logits(hidden[batch.logit_rows])
