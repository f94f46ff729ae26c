"""In fixed tiles nothing depends on the neighbours: not a bit of a result, nor how many rows a kernel is given."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from lab.checks import invariance
from lab.checks.invariance import TILE, FixedTiles, TiledSdpa, bit_equality
from lab.model.decoder import FEW_ROWS, linear
from lab.model.weights import load_model

aten = torch.ops.aten
CHUNK_SIZES = [1, 7, 33]


def tiled(name="tiny", dtype="float32"):
    rows = bit_equality(load_model(name, dtype=dtype, device="cpu").decoder, 70, CHUNK_SIZES)
    return [row for row in rows if row.setting == "fixed tiles"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["tiny", "tiny-qwen2", "tiny-qwen3"])
def test_no_bit_differs_in_fixed_tiles(name, dtype):
    rows = tiled(name, dtype)
    cases = ["repeat", *(f"chunks of {size}" for size in CHUNK_SIZES), "before others", "after others"]
    assert [(row.case, row.rows_that_differ, row.delta) for row in rows] == [(case, 0, 0.0) for case in cases]


class NeighboursCount(TiledSdpa):
    """A row is another by its last bits if more than 5 are computed with it."""

    def __call__(self, q, store, layer, batch):
        out = super().__call__(q, store, layer, batch)
        return out * (1 + torch.finfo(out.dtype).eps * (len(q) > 5))


def test_what_neighbours_change_is_found(monkeypatch):
    monkeypatch.setattr(invariance, "TiledSdpa", NeighboursCount)
    differ = {row.case: row.rows_that_differ for row in tiled()}
    assert differ["repeat"] == differ["chunks of 7"] == 0
    assert differ["chunks of 1"] > 60 and differ["before others"] == differ["after others"] == 5


class Kernels(TorchDispatchMode):
    """How many numbers each product and each mean has computed."""

    def __init__(self):
        super().__init__()
        self.computed = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in (aten.mm, aten.mv, aten.addmm, aten.mean):
            self.computed.append(out.numel())
        return out


ROWS = [1, 2, FEW_ROWS, FEW_ROWS + 1, TILE, TILE + 1]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_product_has_a_tile_of_rows(dtype, rows, has_bias):
    """With AMX few rows of bfloat16 have the bits of many anyway: here it shows whether they are filled up."""
    x, weight = torch.randn(rows, 24).to(dtype), torch.randn(8, 24).to(dtype)
    bias = torch.randn(8).to(dtype) if has_bias else None
    with FixedTiles(), Kernels() as kernels:
        out = linear(x, weight, bias)
    assert kernels.computed == [TILE * 8] * -(-rows // TILE)
    torch.testing.assert_close(out, F.linear(x, weight, bias))


@pytest.mark.parametrize("rows", ROWS)
def test_every_mean_has_a_tile_of_rows(rows):
    x = torch.randn(rows, 24)
    with FixedTiles(), Kernels() as kernels:
        out = x.mean(-1, keepdim=True)
    assert kernels.computed == [TILE] * -(-rows // TILE)
    torch.testing.assert_close(out, x.sum(-1, keepdim=True) / 24)
