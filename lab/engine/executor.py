"""Computes the scheduler's plans with a model.

`execute` is four small methods, so that a broken engine is a subclass with one of them wrong (`lab.checks.faults`).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lab.core import Scheduler, StepPlan
from lab.engine.sampling import sample
from lab.model.attention import AttentionBackend
from lab.model.batch import Batch, Segment
from lab.model.decoder import Decoder
from lab.model.kv_store import KVStore

Observer = Callable[[Tensor, Tensor], None]


class TorchExecutor:
    """A decoder, its KV cache and an attention backend, behind the loop's `Executor` protocol.

    `observe`, if given, is called after each forward pass with hidden `[T, d]` and the logits `[S, vocab]` of the S
    rows that are sampled.
    """

    def __init__(
        self, decoder: Decoder, store: KVStore, attention: AttentionBackend, observe: Observer | None = None
    ) -> None:
        self.decoder = decoder
        self.store = store
        self.attention = attention
        self.observe = observe

    @torch.inference_mode()
    def execute(self, plan: StepPlan, scheduler: Scheduler) -> dict[str, int]:
        batch = self.build_batch(plan, scheduler)
        hidden = self.forward(batch)
        logits = self.logits(hidden, batch)
        sampled = [scheduler.requests[name] for name in plan.num_tokens if self.is_sampled(name, scheduler)]
        if self.observe is not None:
            self.observe(hidden, logits)
        return {request.request_id: token for request, token in zip(sampled, sample(logits, sampled))}

    def build_batch(self, plan: StepPlan, scheduler: Scheduler) -> Batch:
        segments = [self.segment(request_id, n, scheduler) for request_id, n in plan.num_tokens.items()]
        return Batch.build(segments, self.store.block_size, self.decoder.device, self.store.num_blocks)

    def segment(self, request_id: str, num_tokens: int, scheduler: Scheduler) -> Segment:
        """The request's share of the step; the scheduler counts it as computed already, so it ends at that count."""
        request = scheduler.requests[request_id]
        stop = request.num_computed_tokens
        start = stop - num_tokens
        table = scheduler.pool.table(request_id)
        return Segment(request.token_ids(start, stop), start, table, self.is_sampled(request_id, scheduler))

    def is_sampled(self, request_id: str, scheduler: Scheduler) -> bool:
        """Only a request whose known tokens are all computed has a next token; no chunk before the last."""
        return scheduler.requests[request_id].num_uncomputed_tokens == 0

    def forward(self, batch: Batch) -> Tensor:
        return self.decoder(batch.token_ids, batch.positions, self.store, batch, self.attention)

    def logits(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.decoder.logits(hidden[batch.logit_rows])
