"""What cutting a prompt costs: more steps, and earlier keys and values read again. The two causes, apart.

    rows = [row for length in (1024, 4096) for row in chunk_cost(decoder, length, [64, 512, length])]
    fit = fit_cost(rows)          # time = a * steps + b * tokens + c * pairs + d * kv_tokens
    fit.shares(rows[0])           # {"steps": ..., "tokens": ..., "pairs": ..., "kv": ...} of that row's fitted time

The first cause is in `steps`: each launches its operations and reads all weights once. The second is in `kv_tokens`:
chunk j reads the keys and values of all j chunks. The prompt's arithmetic is in `tokens` and in `pairs` of query and
key, the same at any chunk size. One length cannot tell the causes apart: where C divides L, kv_tokens is
L / 2 * (steps + 1), so both grow with the number of steps alone. Two lengths can: at as many steps, a prompt twice as
long reads twice the KV.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import torch

from lab.core.config import require_at_least
from lab.core.errors import ConfigError
from lab.measure.launches import count_kernels, count_ops
from lab.measure.steps import StepRunner, backend_of
from lab.measure.timing import Timing, measure_interleaved
from lab.measure.work import Piece, prefill_pieces, step_work
from lab.model.decoder import Decoder

TERMS = ("steps", "tokens", "pairs", "kv")


@dataclass(frozen=True)
class ChunkCost:
    """A prompt of `tokens` tokens at one chunk size."""

    chunk_size: int
    steps: int
    tokens: int
    pairs: int  # of query and key, that the causal mask lets through
    kv_tokens: int  # tokens whose KV was read, over all steps: ceil(L / C) steps read C, 2 C, ..., L
    weight_bytes: int  # read, over all steps
    flops: int
    ops: int  # ATen operations
    kernels: int | None  # launched on the GPU; None on the CPU
    timing: Timing  # of the whole prompt

    @property
    def terms(self) -> tuple[int, ...]:
        """In the order of `TERMS`."""
        return self.steps, self.tokens, self.pairs, self.kv_tokens


def chunk_cost(
    decoder: Decoder,
    length: int,
    chunk_sizes: Sequence[int],
    *,
    attention: str | None = None,
    repeats: int = 3,
    clock: str = "wall",
) -> list[ChunkCost]:
    """Count and time the prompt at each chunk size, in turn so that whatever else the machine does falls on all.

    Raises LabError for sizes below 1 and for a prompt beyond the model's positions.
    """
    require_at_least("length", length, 1)
    for size in chunk_sizes:
        require_at_least("chunk size", size, 1)
    limit = decoder.config.max_position_embeddings
    if length > limit:
        raise ConfigError(f"length is {length}; the model has {limit} positions, no more")
    backend = backend_of(decoder, attention)
    runner = StepRunner(decoder, backend, length)
    pieces = {size: prefill_pieces(length, size) for size in chunk_sizes}
    runs = {str(size): runner.prefill(of) for size, of in pieces.items()}
    timings = measure_interleaved(runs, decoder.device, repeats=repeats, clock=clock)
    return [_row(decoder, size, of, runs[str(size)], timings[str(size)]) for size, of in pieces.items()]


def _row(decoder: Decoder, size: int, pieces: list[Piece], run: Callable[[], None], timing: Timing) -> ChunkCost:
    works = [step_work(decoder.config, [piece], decoder.dtype) for piece in pieces]
    return ChunkCost(
        chunk_size=size,
        steps=len(pieces),
        tokens=sum(work.tokens for work in works),
        pairs=sum(piece.seen for piece in pieces),
        kv_tokens=sum(work.kv_tokens for work in works),
        weight_bytes=sum(work.weight_bytes for work in works),
        flops=sum(work.flops for work in works),
        ops=count_ops(run),
        kernels=count_kernels(run, decoder.device),
        timing=timing,
    )


@dataclass(frozen=True)
class CostFit:
    """Milliseconds a unit of each of `TERMS`; `error` is the largest of the rows, relative to the measured time."""

    rates: tuple[float, ...]
    error: float

    def milliseconds(self, row: ChunkCost) -> float:
        return sum(self._parts(row))

    def shares(self, row: ChunkCost) -> dict[str, float]:
        """Of the fitted time of a row, the share of each term; they add up to 1."""
        total = self.milliseconds(row)
        return {name: part / total for name, part in zip(TERMS, self._parts(row), strict=True)}

    def _parts(self, row: ChunkCost) -> list[float]:
        return [rate * term for rate, term in zip(self.rates, row.terms, strict=True)]


def fit_cost(rows: Sequence[ChunkCost]) -> CostFit:
    """Least squares of relative errors, no rate below 0: of all choices of terms, the best that has none.

    Raises ConfigError for rows that leave the terms open: fewer than 2 chunk sizes at 2 lengths each.
    """
    times = torch.tensor([row.timing.median for row in rows], dtype=torch.float64)
    scale = torch.tensor([row.terms for row in rows], dtype=torch.float64).reshape(-1, len(TERMS))
    size = scale.amax(0) if len(rows) else scale
    if torch.linalg.matrix_rank(scale / size) < len(TERMS):
        raise ConfigError(
            f"{len(rows)} rows cannot tell {len(TERMS)} terms apart; measure 2 chunk sizes at 2 lengths at least"
        )
    terms, one = scale / size / times[:, None], torch.ones_like(times)
    best, best_error = torch.zeros_like(size), float("inf")
    for chosen in chain.from_iterable(combinations(range(len(TERMS)), n + 1) for n in range(len(TERMS))):
        rates = torch.zeros_like(size)
        rates[list(chosen)] = torch.linalg.lstsq(terms[:, chosen], one[:, None], driver="gelsd").solution[:, 0]
        error = float((terms @ rates - 1).square().sum())
        if (rates >= 0).all() and error < best_error:
            best, best_error = rates, error
    return CostFit(tuple((best / size).tolist()), float((terms @ best - 1).abs().max()))
