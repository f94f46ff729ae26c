"""What the tests of lab.model share."""

import random
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from lab.model.attention import AttentionBackend, select_backend
from lab.model.batch import Batch, Segment
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore


class Driver:
    """Feeds sequences to a decoder step by step, as an engine would; their blocks lie scattered in the pool."""

    def __init__(
        self,
        decoder: Decoder,
        attention: str | AttentionBackend = "sdpa",
        block_size: int = 4,
        num_blocks: int = 400,
        consecutive: bool = False,
    ) -> None:
        self.decoder = decoder
        if isinstance(attention, str):
            attention = select_backend(attention, decoder.config, decoder.device, decoder.dtype, block_size).backend
        self.attention = attention
        self.store = KVStore(decoder.config, num_blocks, block_size, dtype=decoder.dtype, device=decoder.device)
        self.free = list(range(num_blocks))
        if not consecutive:
            random.Random(0).shuffle(self.free)
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def batch(self, feed: dict[str, Sequence[int]]) -> Batch:
        """The tokens to feed to each sequence, as a batch."""
        segments = []
        for name, tokens in feed.items():
            table, start = self.tables.setdefault(name, []), self.lengths.get(name, 0)
            self.lengths[name] = start + len(tokens)
            while len(table) * self.store.block_size < self.lengths[name]:
                table.append(self.free.pop(0))
            segments.append(Segment(tokens, start, table, True))
        return Batch.build(segments, self.store.block_size, self.decoder.device, self.store.num_blocks)

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor:
        """Logits of all rows of the batch."""
        hidden = self.decoder(batch.token_ids, batch.positions, self.store, batch, self.attention)
        return self.decoder.logits(hidden)

    def step(self, **feed: Sequence[int]) -> dict[str, Tensor]:
        """One step; the logits of all tokens fed, by sequence."""
        batch = self.batch(feed)
        return dict(zip(feed, self.run(batch).split(list(batch.query_lens))))

    def chunks(self, tokens: Sequence[int], size: int) -> Tensor:
        """The logits of a sequence fed in chunks."""
        name = f"sequence {len(self.tables)}"
        return torch.cat([self.step(**{name: tokens[i : i + size]})[name] for i in range(0, len(tokens), size)])

    def greedy(self, name: str, logits: Tensor, num_tokens: int) -> Iterator[int]:
        """The next tokens of a sequence, from the logits of its last step on; each is fed alone."""
        for _ in range(num_tokens):
            token = int(logits[-1].argmax())
            yield token
            logits = self.step(**{name: [token]})[name]


@pytest.fixture(scope="session")
def driver() -> type[Driver]:
    return Driver
