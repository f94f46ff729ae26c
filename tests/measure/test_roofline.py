"""The roofline's arithmetic; what a machine reaches is not asserted, only that it is a number."""

import pytest
import torch

from lab.core.errors import LabError
from lab.measure import roofline as module
from lab.measure.roofline import Ceilings, RooflineRow, ceilings, roofline
from lab.measure.timing import Timing
from lab.measure.work import Piece, step_work
from lab.model.tiny import TINY
from lab.model.weights import load_model

torch.set_num_threads(1)


def test_rows() -> None:
    decoder = load_model("tiny", device="cpu").decoder
    rows = roofline(decoder, prefill_tokens=(1, 32), decode_batches=(1, 32), context=50, repeats=1, clock="process")
    assert [(row.kind, row.tokens, row.context) for row in rows] == [
        ("prefill", 1, 1), ("prefill", 32, 32), ("decode", 1, 50), ("decode", 32, 50),
    ]  # fmt: skip
    assert rows[1].work.kv_tokens == 32 and rows[3].work.kv_tokens == 32 * 50
    assert rows[1].work.intensity > rows[3].work.intensity > rows[2].work.intensity
    assert all(row.flops_per_s > 0 and row.timing.clock == "process" for row in rows)


def test_the_bound_by_hand() -> None:
    limits = Ceilings(flops_per_s=100e9, bytes_per_s=10e9)
    assert limits.ridge == 10
    for pieces, bound in (([Piece(1, 1)], "bytes"), ([Piece(512, 512)], "operations")):
        work = step_work(TINY["tiny"], pieces, torch.float32)
        row = RooflineRow("prefill", 1, work, Timing((2.0,)))
        assert (work.intensity < limits.ridge) == (bound == "bytes")
        assert row.bound_ms(limits) == pytest.approx(work.nbytes / 1e7 if bound == "bytes" else work.flops / 1e8)
        assert row.flops_per_s == work.flops / 0.002


def test_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.MATMUL_SIZE, "cpu", 64)
    monkeypatch.setitem(module.COPY_BYTES, "cpu", 2**16)
    samples = iter([Timing((4.0, 2.0)), Timing((8.0,)), Timing((2.0,))])  # product, copy, matrix times vector
    monkeypatch.setattr(module, "measure", lambda fn, device, **_: (fn(), next(samples))[1])
    limits = ceilings(torch.device("cpu"), torch.float32)
    assert limits.flops_per_s == 2 * 64**3 / 0.002
    assert limits.bytes_per_s == max(2 * 2**16 / 0.008, 2**16 / 0.002)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prefill_tokens": [0]}, "prefill tokens is 0"),
        ({"decode_batches": [0]}, "decode batch is 0"),
        ({"context": 0}, "context is 0"),
        ({"context": 5000}, "context is 5000; the model has 4096 positions"),
    ],
)
def test_refused(change: dict, message: str) -> None:
    with pytest.raises(LabError, match=message):
        roofline(load_model("tiny", device="cpu").decoder, **change)
