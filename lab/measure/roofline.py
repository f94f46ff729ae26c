"""The roofline, measured: time and operations a second against tokens per step, for prefill and for decode.

    limits = ceilings(device, dtype)
    for row in roofline(decoder):
        row.kind, row.tokens, row.timing.median, row.flops_per_s, row.bound_ms(limits)

A step can be no faster than its operations at the machine's best rate, nor than its bytes at the memory's (Williams et
al., "Roofline", 2009). Both best rates are measured here too, with a product of large matrices, and a
large copy or a large matrix times a vector, whichever moves more. On a busy machine measure both on one thread with
the clock "process".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from lab.core.config import require_at_least
from lab.core.errors import ConfigError
from lab.measure.steps import StepRunner, backend_of
from lab.measure.timing import Timing, measure
from lab.measure.work import Piece, Work, step_work
from lab.model.decoder import Decoder

Kind = Literal["prefill", "decode"]
MATMUL_SIZE = {"cpu": 1024, "cuda": 8192}
COPY_BYTES = {"cpu": 2**28, "cuda": 2**29}  # far above any cache


@dataclass(frozen=True)
class Ceilings:
    """What the device reaches at best in a dtype."""

    flops_per_s: float
    bytes_per_s: float  # read, or read and written together

    @property
    def ridge(self) -> float:
        """Operations a byte below which memory is the limit."""
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True)
class RooflineRow:
    """A step of `work.tokens` tokens: of one new prompt, or one of each of as many sequences of `context` tokens."""

    kind: Kind
    context: int
    work: Work
    timing: Timing

    @property
    def tokens(self) -> int:
        return self.work.tokens

    @property
    def flops_per_s(self) -> float:
        """Achieved, by the median time."""
        return self.work.flops / self.timing.median * 1e3

    def bound_ms(self, limits: Ceilings) -> float:
        """Least time of the step by the roofline, in milliseconds."""
        return 1e3 * max(self.work.flops / limits.flops_per_s, self.work.nbytes / limits.bytes_per_s)


def ceilings(device: torch.device, dtype: torch.dtype, *, repeats: int = 5, clock: str = "wall") -> Ceilings:
    """Measure the device: the fastest of `repeats` products, copies, and products of a matrix and a vector."""
    size, nbytes = MATMUL_SIZE[device.type], COPY_BYTES[device.type]
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    product = measure(lambda: a @ b, device, repeats=repeats, clock=clock)
    source = torch.zeros(nbytes // size // dtype.itemsize, size, dtype=dtype, device=device)
    target = torch.empty_like(source)
    copy = measure(lambda: target.copy_(source), device, repeats=repeats, clock=clock)
    read = measure(lambda: source @ a[0], device, repeats=repeats, clock=clock)
    return Ceilings(2e3 * size**3 / product.min, 1e3 * max(2 * source.nbytes / copy.min, source.nbytes / read.min))


def roofline(
    decoder: Decoder,
    *,
    prefill_tokens: Sequence[int] = (1, 4, 16, 64, 256, 1024),
    decode_batches: Sequence[int] = (1, 4, 16, 64),
    context: int = 256,
    attention: str | None = None,
    repeats: int = 3,
    clock: str = "wall",
) -> list[RooflineRow]:
    """A row a step: prompts of `prefill_tokens` tokens, then decodes of `decode_batches` sequences.

    Raises LabError for sizes below 1 and for a prompt or a context beyond the model's positions.
    """
    limit = decoder.config.max_position_embeddings
    for name, value in [("prefill tokens", n) for n in prefill_tokens] + [("context", context)]:
        require_at_least(name, value, 1)
        if value > limit:
            raise ConfigError(f"{name} is {value}; the model has {limit} positions, no more")
    for batch in decode_batches:
        require_at_least("decode batch", batch, 1)
    cells: list[tuple[Kind, list[Piece]]] = [("prefill", [Piece(n, n)]) for n in prefill_tokens]
    cells += [("decode", [Piece(1, context)] * batch) for batch in decode_batches]
    backend = backend_of(decoder, attention)
    rows = []
    for kind, pieces in cells:
        runner = StepRunner(decoder, backend, pieces[0].kv_length, len(pieces))
        timing = measure(runner.step(pieces), decoder.device, repeats=repeats, clock=clock)
        work = step_work(decoder.config, pieces, decoder.dtype)
        rows.append(RooflineRow(kind, pieces[0].kv_length, work, timing))
    return rows
