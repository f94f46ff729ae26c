"""Six broken engines. Each differs from `TorchExecutor` in one method, by a mistake that has shipped somewhere.

They answer plausibly, and some even with the right next token; `lab.checks.equivalence` must find every one of them.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lab.core import Scheduler, StepPlan
from lab.engine.executor import TorchExecutor
from lab.model.batch import Batch
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
        return self.decoder(batch.token_ids, batch.positions, self.store, batch, UpperLeft())


class UpperLeft:
    name = "upper-left"

    def __call__(self, q: Tensor, store: KVStore, layer: int, batch: Batch) -> Tensor:
        outputs = []
        for rows, length, table in zip(batch.rows, batch.context_lens, batch.block_tables):
            query, k, v = (x.transpose(0, 1)[None] for x in (q[rows], *store.read(layer, table, length)))
            out = F.scaled_dot_product_attention(query, k, v, is_causal=True, enable_gqa=True)
            outputs.append(out[0].transpose(0, 1))
        return torch.cat(outputs)


class WrongSlotAtBlockEdge(TorchExecutor):
    """Each later chunk writes its first row one slot early, over the last row of the chunk before."""

    def build_batch(self, plan: StepPlan, scheduler: Scheduler) -> Batch:
        batch = super().build_batch(plan, scheduler)
        slots = batch.slots.clone()
        for rows in batch.rows:
            if batch.positions[rows.start] > 0:
                slots[rows.start] -= 1
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
    return torch.cat([batch.positions[rows.start].expand(rows.stop - rows.start) for rows in batch.rows])
