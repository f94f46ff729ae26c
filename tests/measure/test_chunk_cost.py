"""What chunks cost, counted exactly; times are only looked at for being there."""

from dataclasses import replace

import pytest
import torch

from lab.core.errors import LabError
from lab.measure.chunk_cost import TERMS, ChunkCost, chunk_cost, fit_cost
from lab.measure.timing import Timing
from lab.model.weights import load_model

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rows() -> list[ChunkCost]:
    decoder = load_model("tiny", device="cpu").decoder
    return [row for length in (64, 128) for row in chunk_cost(decoder, length, [16, 64], repeats=1)]


def test_counts(rows: list[ChunkCost]) -> None:
    assert [(row.steps, row.kv_tokens) for row in rows] == [(4, 160), (1, 64), (8, 576), (2, 192)]
    assert [row.tokens for row in rows] == [64, 64, 128, 128]
    assert rows[0].flops == rows[1].flops and rows[2].flops == rows[3].flops  # the arithmetic is the same
    assert rows[0].weight_bytes > 3 * rows[1].weight_bytes
    assert rows[0].ops > 3.9 * rows[1].ops and rows[0].kernels is None
    assert all(row.timing.median > 0 for row in rows)


def with_time(row: ChunkCost, rates: tuple[float, ...]) -> ChunkCost:
    return replace(row, timing=Timing((sum(rate * n for rate, n in zip(rates, row.terms, strict=True)),)))


@pytest.mark.parametrize("rates", [(2.0, 0.05, 1e-4, 0.003), (2.0, 0.05, 0.0, 0.0), (0.0, 0.0, 1e-3, 0.5)])
def test_the_fit_finds_the_causes(rows: list[ChunkCost], rates: tuple[float, ...]) -> None:
    timed = [with_time(row, rates) for row in rows]
    fit = fit_cost(timed)
    assert fit.rates == pytest.approx(rates, abs=1e-9) and fit.error < 1e-9
    for row in timed:
        assert fit.milliseconds(row) == pytest.approx(row.timing.median)
        shares = fit.shares(row)
        assert list(shares) == list(TERMS) and sum(shares.values()) == pytest.approx(1)
        assert shares["kv"] == pytest.approx(rates[3] * row.kv_tokens / row.timing.median, abs=1e-9)


def test_no_cause_has_a_negative_cost(rows: list[ChunkCost]) -> None:
    """Plain least squares would give KV a negative rate here."""
    fit = fit_cost([with_time(row, (2.0, 0.05, 1e-4, -0.001)) for row in rows])
    assert min(fit.rates) == 0 and 0 < fit.error < 0.2


def test_one_length_cannot_tell_them_apart(rows: list[ChunkCost]) -> None:
    for too_few in (rows[:2], [], rows[:1] * 5, [rows[0], rows[2]]):
        with pytest.raises(LabError, match="2 chunk sizes at 2 lengths at least"):
            fit_cost(too_few)


@pytest.mark.parametrize(
    ("length", "sizes", "message"),
    [(0, [1], "length is 0"), (9, [0], "chunk size is 0"), (5000, [64], "the model has 4096 positions")],
)
def test_refused(length: int, sizes: list[int], message: str) -> None:
    with pytest.raises(LabError, match=message):
        chunk_cost(load_model("tiny", device="cpu").decoder, length, sizes)
