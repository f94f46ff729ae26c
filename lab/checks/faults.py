"""Six broken engines. Each differs from `TorchExecutor` in one method, by a mistake that has shipped somewhere.

They answer plausibly, and some even with the right next token; `lab.checks.equivalence` must find every one of them.
"""

from dataclasses import replace

import torch
from torch import Tensor

from lab.core import Scheduler, StepPlan
from lab.engine.executor import TorchExecutor
from lab.model.batch import Batch, Segment
from lab.model.kv_store import KVStore


class RopeRestarted(TorchExecutor):
    """Positions start again at 0 in each chunk."""

    def build_batch(self, plan: StepPlan, scheduler: Scheduler) -> Batch:
        batch = super().build_batch(plan, scheduler)
        return replace(batch, positions=batch.positions - starts(batch))


class OffsetCountedTwice(TorchExecutor):
    """The chunk's offset is added to positions that have it already."""

    def build_batch(self, plan: StepPlan, scheduler: Scheduler) -> Batch:
        batch = super().build_batch(plan, scheduler)
        return replace(batch, positions=batch.positions + starts(batch))


class MaskUpperLeft(TorchExecutor):
    """The causal mask hangs in the upper left corner, as `is_causal=True` hangs it: query i sees keys 0 to i."""

    def forward(self, batch: Batch) -> Tensor:
        return self.decoder(batch.token_ids, batch.positions, self.store, batch, upper_left)


def upper_left(q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
    """Attention of each sequence with `is_causal=True`, whatever its number of queries and keys."""
    outputs = []
    queries = q.split(list(batch.query_lens))
    for query, length, table in zip(queries, batch.context_lens, batch.block_tables):
        k, v = store.read(layer, table, length)
        out = torch.nn.functional.scaled_dot_product_attention(
            *(t.transpose(0, 1).unsqueeze(0) for t in (query, k, v)), is_causal=True, enable_gqa=True
        )
        outputs.append(out.squeeze(0).transpose(0, 1))
    return torch.cat(outputs)


class WrongSlotAtBlockEdge(TorchExecutor):
    """A chunk that starts inside a block writes its first row one slot early, over the last row of the chunk before."""

    def build_batch(self, plan: StepPlan, scheduler: Scheduler) -> Batch:
        batch = super().build_batch(plan, scheduler)
        slots = batch.slots.clone()
        first = torch.tensor(batch.query_lens, device=slots.device).cumsum(0) - torch.tensor(
            batch.query_lens, device=slots.device
        )
        inside = batch.positions[first] > 0
        slots[first[inside]] -= 1
        return replace(batch, slots=slots)


class PartialChunkSampled(TorchExecutor):
    """Every chunk yields a token, not only the one that completes the prompt."""

    def is_sampled(self, request_id: str, scheduler: Scheduler) -> bool:
        return True


class StaleLastRow(TorchExecutor):
    """The next token is taken from the row before the last."""

    def logits(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.decoder.logits(hidden[batch.logit_rows - 1])


FAULTS: tuple[type[TorchExecutor], ...] = (
    RopeRestarted,
    OffsetCountedTwice,
    MaskUpperLeft,
    WrongSlotAtBlockEdge,
    PartialChunkSampled,
    StaleLastRow,
)


def starts(batch: Batch) -> Tensor:
    """`[T]`: for each row the position at which its sequence's part of the batch starts."""
    lens = torch.tensor(batch.query_lens, device=batch.positions.device)
    first = lens.cumsum(0) - lens
    return batch.positions[first].repeat_interleave(lens)
