"""A ragged batch: the new tokens of any mix of sequences, end to end, with no padding.

The model has no word for prefill, chunk or decode: a segment of 512 tokens at start 1024 and one of 1 token at start 80
are the same thing to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import torch
from torch import Tensor

from lab.core.errors import LabError
from lab.model.kv_store import BlockIndex, block_index, first_run

LONG_RUN = 512  # tokens: to copy fewer takes no longer than a second call of the attention kernel
MOST_COPIED = 1024  # tokens: twice as many are hardly faster, and memory that the ledger has no line for


class BatchError(LabError, ValueError):
    """A segment that does not fit its block table."""


@dataclass(frozen=True)
class Segment:
    """One request's share of a step."""

    token_ids: Sequence[int]  # the tokens to feed, at least one
    start: int  # index of the first of them in its sequence = KV length before this step
    block_table: Sequence[int]  # KV blocks of the sequence, in order; covers start + len(token_ids) tokens
    sample: bool  # are logits wanted for the last row?


@dataclass(frozen=True)
class Batch:
    """T rows of N segments. What backends need besides is made at first use, once per step and not once per layer.

    Copies to a GPU do not wait for it, so that a batch is built while the step before is computed: memory that is not
    pinned has been read when such a copy returns.
    """

    token_ids: Tensor  # int64 [T]
    positions: Tensor  # int64 [T], index in its own sequence
    slots: Tensor  # int64 [T], where the row's KV goes: block * block_size + offset
    query_lens: tuple[int, ...]  # [N], rows of each segment
    context_lens: tuple[int, ...]  # [N], KV length after this step, the new tokens included
    block_tables: tuple[tuple[int, ...], ...]  # [N], just the blocks that hold context_lens tokens
    logit_rows: Tensor  # int64 [S], rows of hidden whose logits are wanted
    block_size: int

    @classmethod
    def build(
        cls, segments: Sequence[Segment], block_size: int, device: torch.device, num_blocks: int | None = None
    ) -> "Batch":
        """Check the segments on the host (on a GPU a bad slot would end the process) and lay them end to end.

        Raises BatchError for an empty segment, a negative start, a block table that is too short or, if `num_blocks` is
        given, a block that is not among them.
        """
        if not segments:
            raise BatchError("a batch needs at least one segment; it has 0")
        for segment in segments:
            _check(segment, block_size, num_blocks)
        query_lens = tuple(len(segment.token_ids) for segment in segments)
        starts = [segment.start for segment in segments]
        context_lens = tuple(start + n for start, n in zip(starts, query_lens))
        tables = tuple(tuple(s.block_table[: -(-length // block_size)]) for s, length in zip(segments, context_lens))
        ends = list(accumulate(query_lens))
        token_ids = list(chain.from_iterable(segment.token_ids for segment in segments))
        logit_rows = [end - 1 for end, segment in zip(ends, segments) if segment.sample]

        # Row r belongs to segment owner[r] and is its token number r - (rows before it).
        owner = torch.repeat_interleave(torch.tensor(query_lens), output_size=ends[-1])
        first_rows = [end - n for end, n in zip(ends, query_lens)]
        shift = torch.tensor([start - row for start, row in zip(starts, first_rows)])
        positions = torch.arange(ends[-1]) + shift[owner]
        blocks = _padded(tables, torch.int64)[owner, positions // block_size]
        return cls(
            token_ids=torch.tensor(token_ids, dtype=torch.int64).to(device, non_blocking=True),
            positions=positions.to(device, non_blocking=True),
            slots=(blocks * block_size + positions % block_size).to(device, non_blocking=True),
            query_lens=query_lens,
            context_lens=context_lens,
            block_tables=tables,
            logit_rows=torch.tensor(logit_rows, dtype=torch.int64).to(device, non_blocking=True),
            block_size=block_size,
        )

    @property
    def device(self) -> torch.device:
        return self.slots.device

    @cached_property
    def rows(self) -> tuple[slice, ...]:
        """[N], the rows of each segment."""
        return tuple(slice(end - n, end) for end, n in zip(accumulate(self.query_lens), self.query_lens))

    @cached_property
    def kv_blocks(self) -> tuple[BlockIndex, ...]:
        """[N], what `KVStore.select` takes."""
        return tuple(block_index(table, self.device) for table in self.block_tables)

    @cached_property
    def kv_parts(self) -> tuple[tuple[tuple[BlockIndex, int], ...], ...]:
        """[N], blocks and how many tokens are in them: one part, or two if a long run at the start can stay in place.

        Requests that decode together take their new blocks in turn, so that only their prompts' are consecutive.
        """
        return tuple(map(self._parts, self.block_tables, self.context_lens))

    def _parts(self, table: tuple[int, ...], length: int) -> tuple[tuple[BlockIndex, int], ...]:
        run = first_run(table)
        tokens = run * self.block_size
        if run == len(table) or tokens < max(LONG_RUN, length / 2):
            return ((block_index(table, self.device), length),)
        parts = (table[:run], tokens), (table[run:], length - tokens)
        return tuple((block_index(part, self.device), n) for part, n in parts)

    @cached_property
    def decode_groups(self) -> list[tuple[slice, Tensor, Tensor]]:
        """n segments each, to be attended to in one call: their rows; the slots of L tokens, int64 `[n, L]`; and which
        of those are the segment's own, bool `[n, 1, 1, L]`. The others repeat its first: what is another's may be NaN,
        which no weight of 0 takes away.

        Empty unless the batch is several segments of one token, all with so little KV that it takes no time to copy.
        """
        if len(self.rows) == 1 or max(self.query_lens) > 1 or max(self.context_lens) > LONG_RUN:
            return []
        width = max(map(len, self.block_tables)) * self.block_size
        tokens = torch.arange(width, device=self.device)
        seen = tokens < self.kv_lens[:, None]
        slots = self.block_table.repeat_interleave(self.block_size, 1) * self.block_size + tokens % self.block_size
        slots = slots.where(seen, slots[:, :1])
        size = max(1, MOST_COPIED // width)
        groups = (slice(start, start + size) for start in range(0, len(self.rows), size))
        return [(rows, slots[rows], seen[rows, None, None]) for rows in groups]

    @cached_property
    def cu_query_lens(self) -> Tensor:
        """int32 [N + 1], the row where each segment begins, and T."""
        return torch.tensor([0, *accumulate(self.query_lens)], dtype=torch.int32).to(self.device, non_blocking=True)

    @cached_property
    def cu_kv_lens(self) -> Tensor:
        """int32 [N + 1], the running sum of `context_lens`, from 0."""
        return torch.tensor([0, *accumulate(self.context_lens)], dtype=torch.int32).to(self.device, non_blocking=True)

    @cached_property
    def kv_lens(self) -> Tensor:
        """int32 [N], `context_lens` on the device."""
        return torch.tensor(self.context_lens, dtype=torch.int32).to(self.device, non_blocking=True)

    @cached_property
    def block_table(self) -> Tensor:
        """int32 [N, most blocks], `block_tables` on the device, padded with block 0."""
        return _padded(self.block_tables, torch.int32).to(self.device, non_blocking=True)


def _check(segment: Segment, block_size: int, num_blocks: int | None) -> None:
    n, start, table = len(segment.token_ids), segment.start, segment.block_table
    if n < 1 or start < 0:
        raise BatchError(f"a segment has {n} tokens at start {start}; it needs 1 token and start 0 at least")
    if len(table) * block_size < start + n:
        raise BatchError(
            f"a segment ends at token {start + n} and its {len(table)} blocks of {block_size} hold "
            f"{len(table) * block_size}; allocate {-(-(start + n) // block_size)} blocks first"
        )
    if min(table) < 0 or (num_blocks is not None and max(table) >= num_blocks):
        limit = "" if num_blocks is None else f" to {num_blocks - 1}"
        raise BatchError(f"a block table names blocks {min(table)} to {max(table)}; blocks go from 0{limit}")


def _padded(tables: Sequence[Sequence[int]], dtype: torch.dtype) -> Tensor:
    width = max(map(len, tables))
    return torch.tensor([[*table, *[0] * (width - len(table))] for table in tables], dtype=dtype)
