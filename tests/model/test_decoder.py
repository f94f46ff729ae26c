"""The decoder's products, whichever operand the weight is."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from lab.model.decoder import FEW_ROWS, linear

CPUINFO = Path("/proc/cpuinfo")
CPU_FLAGS = CPUINFO.read_text().split() if CPUINFO.exists() else []
SIZES = [(64, 176), (128, 128), (768, 256), (2048, 768)]  # in, out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 2, 7, FEW_ROWS, FEW_ROWS + 1])
def test_linear(rows: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(rows)
    for size, out_size in SIZES:
        x = torch.randn(rows, size, generator=generator).to(dtype)
        weight = (torch.randn(out_size, size, generator=generator) / size**0.5).to(dtype)
        exact = x.double() @ weight.double().t()
        out = linear(x, weight)
        assert out.shape == exact.shape and out.dtype == dtype
        assert (out - exact).abs().max() < max(1e-5, 4 * torch.finfo(dtype).eps)  # of numbers up to 4


@pytest.mark.skipif("amx_bf16" not in CPU_FLAGS, reason="on a processor without AMX the two round apart")
def test_few_rows_have_the_same_bits_on_amx() -> None:
    generator = torch.Generator().manual_seed(0)
    for size, out_size in SIZES:
        weight = torch.randn(out_size, size, generator=generator).bfloat16()
        for rows in range(1, FEW_ROWS + 1):
            x = torch.randn(rows, size, generator=generator).bfloat16()
            assert torch.equal(linear(x, weight), F.linear(x, weight)), (rows, size, out_size)


def test_which_way_around() -> None:
    """Few rows of bfloat16 come as columns; a bias and all else as rows."""
    weight = torch.randn(8, 4)
    for rows, dtype, bias, columns in [
        (2, torch.bfloat16, False, True),
        (FEW_ROWS, torch.bfloat16, False, True),
        (FEW_ROWS + 1, torch.bfloat16, False, False),
        (2, torch.float32, False, False),
        (2, torch.bfloat16, True, False),
    ]:
        x, w = torch.randn(rows, 4).to(dtype), weight.to(dtype)
        b = torch.randn(8).to(dtype) if bias else None
        out = linear(x, w, b)
        assert out.is_contiguous() == (not columns)
        torch.testing.assert_close(out, F.linear(x, w, b))
